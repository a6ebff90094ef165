"""Text encodings and layouts of masks are detected; where the data leaves it open, a user decides."""

from __future__ import annotations

import io
import json
import time

import numpy as np
import pytest
from PIL import Image

from datasets.formats import detect, encodings
from datasets.formats.listing import Listing
from tests.cases import case_table
from tests.datasets.pictures import coco, picture, put, voc_xml
from tests.datasets.read_folders import LINE, codes, mask_png, notes, photo, read_folder, said, two_objects, yolo_pairs

# --- encodings

NAMES = {
    "gb18030": "红细胞 白细胞 血小板",
    "cp932": "ひび割れ 自動車 信号機",
    "big5": "紅血球 汽車 行人",
    "euc_kr": "자동차 보행자 신호등",
    "cp1252": "Gänseblümchen café naïve",
    "cp1251": "кошка собака машина",
    "utf-16": "红细胞 白细胞 血小板",
    "utf-8-sig": "红细胞 白细胞 血小板",
}


@pytest.mark.parametrize("encoding", NAMES)
def test_class_lists_yaml_json_and_xml_are_read_in_every_encoding(tmp_path, encoding):
    first, second, third = NAMES[encoding].split()
    lists = {
        "classes.txt": f"{first}\n{second}\n{third}\n",
        "data.yaml": f"names:\n  0: {first}\n  1: {second}\n  2: {third}\n",
    }
    for name, text in lists.items():
        files = {name: text.encode(encoding), "a.png": picture(), "a.txt": LINE}
        parsed = read_folder(put(tmp_path / name, files))
        assert [info.name for info in parsed.classes] == [first, second, third], name
    shapes = [{"label": label, "shape_type": "rectangle", "points": [[1, 1], [9, 9]]} for label in (first, second)]
    labelme = json.dumps({"shapes": shapes, "imagePath": "a.png"}, ensure_ascii=False)
    parsed = read_folder(put(tmp_path / "labelme", {"a.png": picture(), "a.json": labelme.encode(encoding)}))
    assert {info.name for info in parsed.classes} == {first, second}
    data = json.dumps(coco(1, categories=[{"id": 7, "name": first}]), ensure_ascii=False)
    parsed = read_folder(put(tmp_path / "coco", {"0.png": picture(), "a.json": data.encode(encoding)}))
    assert [info.name for info in parsed.classes] == [first]
    named = encoding.removesuffix("-sig")
    for declared in (f'<?xml version="1.0" encoding="{named}"?>', ""):
        xml = declared + voc_xml("a.png", (first, 1, 1, 9, 9), (second, 1, 1, 9, 9))
        parsed = read_folder(
            put(tmp_path / f"voc{bool(declared)}", {"a.png": picture(), "a.xml": xml.encode(encoding)})
        )
        assert {info.name for info in parsed.classes} == {first, second}, declared
    if not encoding.startswith("utf"):
        told = {**codes(parsed), **notes(parsed)}
        assert "other_encoding" in told or "uncertain_encoding" in told


def test_short_names_are_read_with_the_other_files_of_the_set_as_context(tmp_path):
    files: dict[str, bytes | str] = {"classes.txt": "猫\n狗\n".encode("gb18030"), "a.png": picture(), "a.txt": LINE}
    files["notes.txt"] = "红细胞和白细胞的图像".encode("gb18030")

    assert [info.name for info in read_folder(put(tmp_path, files)).classes] == ["猫", "狗"]


def test_an_uncertain_encoding_is_a_problem_and_a_user_may_choose(tmp_path):
    put(tmp_path, {"classes.txt": "猫\n狗\n".encode("gb18030"), "a.png": picture(), "a.txt": LINE})
    parsed = read_folder(tmp_path)
    assert codes(parsed) == {"uncertain_encoding": 1}

    listing = Listing.scan(tmp_path)
    listing.encoding = "big5"
    chosen = detect.read(listing, "yolo")

    assert [info.name for info in chosen.classes] == ["猫\n狗".encode("gb18030").decode("big5").split()[0], "僩"]
    assert notes(chosen) == {"other_encoding": 1}


@pytest.mark.parametrize("word", ["猫咪", "猫咪咬人"])
def test_chinese_names_are_never_taken_for_cyrillic_or_latin_ones_with_certainty(word):
    text = f"<annotation><name>{word}</name></annotation>"

    decoded = encodings.decode(text.encode("gb18030"), context=word.encode("gb18030"))

    assert decoded.text == text or "gb18030" in decoded.alternatives


@pytest.mark.parametrize("name", ["punycode", "idna", "unicode_escape", "rot13", "base64", "no such thing", "utf\0"])
def test_declared_encodings_that_no_file_is_in_are_not_applied(tmp_path, name):
    xml = f'<?xml version="1.0" encoding="{name}"?>' + voc_xml("a.png", ("a-" * 500_000, 1, 1, 9, 9))
    began = time.process_time()

    parsed = read_folder(put(tmp_path, {"a.png": picture(), "a.xml": xml}))

    assert not encodings.is_encoding(name)
    assert time.process_time() - began < 5
    assert len(parsed.images) == 1


def test_binary_data_is_no_text():
    with pytest.raises(encodings.NotText):
        encodings.decode(bytes(range(256)) * 4)


def test_label_files_that_are_no_text_are_problems(tmp_path):
    parsed = read_folder(put(tmp_path, yolo_pairs(i1="x") | {"labels/1.txt": b"\x00\x01\x02\xff" * 9}))

    assert (codes(parsed), sum(1 for _shape in parsed.shapes())) == ({"unreadable": 1}, 2)


# --- masks


@case_table(
    ("mask", "image"),
    [
        ("trainannot/{}.png", "train/{}.png"),
        ("labels/train/{}.png", "images/train/{}.png"),
        ("y/{}.png", "x/{}.png"),
        ("set/{}_mask.png", "set/{}.png"),
        ("set/mask_{}.png", "set/{}.png"),
        ("set/{}_seg0.png", "set/{}.png"),
        ("set/mask_0_{}.png", "set/{}.png"),
        ("set/{}.png", "set/{}.jpg"),
        ("GT/{}.bmp", "JPEG/{}.jpg"),
    ],
)
def test_masks_are_found_in_any_layout(tmp_path, mask, image):
    for name in ("a1", "b2", "c3"):
        data = two_objects()
        put(tmp_path, {image.format(name): photo(), mask.format(name): _bmp(data) if "bmp" in mask else mask_png(data)})

    parsed = read_folder(tmp_path)

    assert (parsed.format, sorted(said(parsed).values())) == ("masks", [(True, 2)] * 3)
    assert (len(parsed.images), codes(parsed)) == (3, {})


def _bmp(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "BMP")
    return out.getvalue()


def test_numbered_masks_of_an_image_are_an_object_each(tmp_path):
    first, second = two_objects() == 1, two_objects() == 2
    files = {"a.jpg": picture(kind="JPEG")}
    files |= {f"mask_{n}_a.png": mask_png(part.astype(np.uint8) * 255) for n, part in enumerate((first, second))}

    parsed = read_folder(put(tmp_path, files))

    assert (said(parsed), codes(parsed)) == ({"a.jpg": (True, 2)}, {})


def test_a_folder_that_may_hold_masks_is_a_problem_until_a_user_decides(tmp_path):
    drawn = np.zeros((30, 40, 3), np.uint8)
    drawn[:10], drawn[10:20], drawn[20:] = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    shape = np.zeros((30, 40, 3), np.uint8)
    shape[:15] = (255, 255, 255)
    for name in "ab":
        put(tmp_path, {f"one/{name}.png": mask_png(drawn), f"two/{name}.png": mask_png(shape)})

    unsure = read_folder(tmp_path)
    chosen = Listing.scan(tmp_path, mask_folders={"two": "masks"})
    refused = Listing.scan(tmp_path, mask_folders={"two": "images"})

    assert (codes(unsure), len(unsure.images)) == ({"unsure_masks": 1}, 4)
    assert (chosen.masks, chosen.unsure_masks) == ({"two/a.png": "one/a.png", "two/b.png": "one/b.png"}, {})
    assert (refused.masks, refused.unsure_masks, len(refused.images)) == ({}, {}, 4)


def test_same_named_photographs_of_two_classes_are_no_masks(tmp_path):
    put(tmp_path, {f"{label}/{n}.png": photo() for label in ("cat", "dog") for n in range(3)})

    assert read_folder(tmp_path).format == "folders"


def test_masks_that_only_their_content_tells_are_noted_and_may_be_taken_as_images(tmp_path):
    for name in "abc":
        put(tmp_path, {f"rgb/{name}.png": photo(), f"edges/{name}.png": mask_png(two_objects())})

    parsed, refused = read_folder(tmp_path), Listing.scan(tmp_path, mask_folders={"edges": "images"})

    assert (parsed.format, notes(parsed)) == ("masks", {"detected_masks": 1})
    assert (len(refused.images), refused.detected_masks) == (6, {})
