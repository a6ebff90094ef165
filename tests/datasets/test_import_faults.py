"""A fault costs one object, fallbacks are reported, encodings and layouts are detected, nothing is lost in silence."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image

from datasets.formats import detect
from datasets.formats.size_checks import fit_to_image
from datasets.storage import inspector
from tests.cases import case_table
from tests.datasets.pictures import coco, coco_folder, picture, put, voc_xml
from tests.datasets.read_folders import LINE, codes, fitted, notes, photo, read_folder, said, yolo_pairs

# --- a fault costs one object


@case_table(
    ("line", "code"),
    [
        ("0 nan 0.5 0.2 0.2", "bad_line"),
        ("0 inf 0.5 0.2 0.2", "bad_line"),
        ("0 320 240 64 48", "pixel_line"),
        ("0 0.5 0.5", "bad_line"),
        ("cell 0.5 0.5 0.1 0.1", "bad_line"),
        ("0 0.5 0.5 0 0.1", "degenerate_box"),
        ("-1 0.5 0.5 0.1 0.1", "bad_line"),
        ("0 0.1 0.1 0.2 0.2 0.3 0.3 0.4", "bad_line"),
    ],
)
@pytest.mark.parametrize("place", ["first", "last"])
def test_yolo_reader_skips_one_bad_line_and_reads_the_others(tmp_path, place, line, code):
    text = f"{line}\n{LINE}" if place == "first" else f"{LINE}{line}\n"

    parsed = read_folder(put(tmp_path, yolo_pairs(i0=text)))

    assert (parsed.format, sum(1 for _shape in parsed.shapes())) == ("yolo", 3)
    assert (codes(parsed), parsed.problems.skipped) == ({code: 1}, 1)
    assert parsed.problems.listed[0].path == f"labels/0.txt:{1 if place == 'first' else 2}"


def test_coco_reader_takes_ids_of_any_form_and_gives_new_ones(tmp_path):
    data = coco(
        images=[{"id": "img-0", "file_name": "0.png"}, {"id": 1.0, "file_name": "1.png"}],
        categories=[{"id": "cell", "name": "cell"}, {"id": "7", "name": "ring"}],
        annotations=[
            {"id": "a", "image_id": "img-0", "category_id": "cell", "bbox": [1, 1, 5, 5]},
            {"id": "a", "image_id": 1, "category_id": 7, "bbox": [1, 1, 5, 5]},
            {"id": 4, "image_id": "1", "category_id": "7", "bbox": [2, 2, 5, 5]},
            {"id": 4, "image_id": "1", "category_id": "7", "bbox": [3, 3, 5, 5]},
        ],
    )

    parsed = read_folder(coco_folder(tmp_path, data))

    assert said(parsed) == {"0.png": (True, 1), "1.png": (True, 3)}
    assert (codes(parsed), notes(parsed)) == ({}, {"new_id": 3})
    assert {info.name for info in parsed.classes} == {"cell", "ring"}
    ids = [shape.id for shape in parsed.shapes()]
    assert (len(ids), len(set(ids)), 4 in ids) == (4, 4, True)
    assert len({image.id for image in parsed.images}) == 2


def test_coco_reader_skips_annotations_of_ids_that_stand_for_two_things(tmp_path):
    data = coco(
        2,
        images=[{"id": 1, "file_name": "0.png"}, {"id": 1, "file_name": "1.png"}],
        categories=[{"id": 7, "name": "a"}, {"id": 7, "name": "b"}, {"id": 3, "name": "c"}],
        annotations=[{"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 1, 5, 5]}],
    )
    categories = coco(1, categories=data["categories"])

    parsed = read_folder(coco_folder(tmp_path / "a", data))
    other = read_folder(coco_folder(tmp_path / "b", categories))

    assert (codes(parsed)["lost_shapes"], parsed.problems.skipped) == (1, 1)
    assert all(not image.annotated for image in parsed.images)
    assert (codes(other)["ambiguous_id"], other.problems.skipped) == (1, 1)


def test_coco_files_of_two_splits_join_their_classes_by_name(tmp_path):
    first = coco(1, categories=[{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}])
    first["annotations"][0]["category_id"] = 1
    second = coco(1, categories=[{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}, {"id": 3, "name": "cow"}])
    second["images"][0]["file_name"] = "1.png"
    second["annotations"] = [{"id": n, "image_id": 0, "category_id": n, "bbox": [1, 1, 5, 5]} for n in (1, 2, 3)]
    put(tmp_path, {"train.json": json.dumps(first), "val.json": json.dumps(second)})
    put(tmp_path, {f"images/{n}.png": picture() for n in range(2)})

    parsed = read_folder(tmp_path)

    names = {info.id: info.name for info in parsed.classes}
    assert names == {1: "cat", 2: "dog", 3: "cow"}
    assert [names[shape.class_id] for shape in parsed.images[1].shapes] == ["dog", "cat", "cow"]
    assert notes(parsed)["renumbered_class"] == 2


# --- names of images


@case_table(
    ("name", "note"),
    [
        ("images/a b.png", {}),
        ("a b.png", {}),
        ("../images/a b.png", {}),
        ("..\\images\\a b.png", {}),
        ("/home/me/set/images/a b.png", {"matched_suffix": 1}),
        ("D:\\set\\label\\a b.png", {"matched_suffix": 1}),
        ("https://host:80/x/a%20b.png?token=1", {"matched_suffix": 1}),
        ("A B.PNG", {"matched_case": 1}),
        ("a%20b.png", {"matched_escape": 1}),
        ("a b.jpg", {"matched_stem": 1}),
        ("a b", {"matched_stem": 1}),
    ],
)
def test_coco_reader_finds_an_image_by_any_name_and_reports_the_fallback(tmp_path, name, note):
    data = coco(1)
    data["images"][0]["file_name"] = name
    put(tmp_path, {"images/a b.png": picture(), "images/c.png": picture(), "labels.json": json.dumps(data)})

    parsed = read_folder(tmp_path)

    assert said(parsed)[next(path for path in said(parsed) if path.endswith("a b.png"))] == (True, 1)
    assert notes(parsed) == note


def test_an_image_is_matched_by_a_fallback_only_where_it_is_the_only_one(tmp_path):
    data = coco(1)
    data["images"][0]["file_name"] = "a.png"
    put(tmp_path, {"x/A.png": picture(), "y/A.PNG": picture(), "labels.json": json.dumps(data)})

    parsed = read_folder(tmp_path)

    assert (codes(parsed)["ambiguous_image"], parsed.problems.skipped) == (1, 1)


def test_yolo_reader_finds_label_files_in_another_case(tmp_path):
    parsed = read_folder(put(tmp_path, {"images/Cell_1.PNG": picture(), "labels/cell_1.txt": LINE, "classes.txt": "x"}))

    assert said(parsed) == {"Cell_1.PNG": (True, 1)}


# --- sizes


def test_rle_of_another_size_than_its_image_is_skipped(tmp_path):
    good, swapped = ({"size": size, "counts": [100, 20, 1080]} for size in ([30, 40], [40, 30]))
    base: dict[str, Any] = {"image_id": 0, "category_id": 7, "iscrowd": 0}
    data = coco(1, annotations=[base | {"id": n, "segmentation": rle} for n, rle in enumerate((good, swapped), 1)])

    parsed = fitted(read_folder(coco_folder(tmp_path, data, images=1)), 40, 30)

    assert (codes(parsed), parsed.problems.skipped, said(parsed)) == ({"mask_size": 1}, 1, {"0.png": (True, 1)})


@pytest.mark.parametrize("orientation", range(2, 9))
def test_shapes_given_on_the_stored_image_turn_with_it(tmp_path, orientation):
    pixels = np.zeros((20, 30), np.uint8)
    pixels[3:9, 5:20] = 255
    exif = Image.Exif()
    exif[0x112] = orientation
    out = io.BytesIO()
    Image.fromarray(pixels).convert("RGB").save(out, "PNG", exif=exif)
    data = coco(1, annotations=[{"id": 1, "image_id": 0, "category_id": 7, "bbox": [5, 3, 15, 6]}])
    data["images"][0] |= {"width": 30, "height": 20}
    put(tmp_path, {"0.png": out.getvalue(), "a.json": json.dumps(data)})
    parsed = read_folder(tmp_path)
    facts = inspector.inspect(tmp_path, "0.png", None)

    fit_to_image(parsed.images[0], facts["width"], facts["height"], parsed.problems, exif=facts["orientation"])

    if orientation < 5:  # nothing tells which image the shapes are given on
        assert codes(parsed) == {"rotated": 1}
        return
    with Image.open(tmp_path / "0.png") as image:
        from PIL import ImageOps

        upright = np.asarray(ImageOps.exif_transpose(image).convert("L"))
    rows, columns = np.nonzero(upright)
    bounds = (columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1)
    assert parsed.images[0].shapes[0].bbox == tuple(map(float, bounds))
    assert (codes(parsed), notes(parsed)) == ({}, {"turned": 1})


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_a_tiff_of_16_bits_becomes_a_png_with_the_same_values(tmp_path, mode):
    values = np.arange(1200, dtype=np.uint16).reshape(30, 40) * 50
    stored = values.astype(">u2") if mode == "I;16B" else values
    image = Image.frombytes(mode, (40, 30), stored.tobytes())
    image.save(tmp_path / "deep.tif")

    found = inspector.inspect(tmp_path, "deep.tif", tmp_path / "stills")

    with Image.open(tmp_path / "stills" / found["still"]) as kept:
        assert (np.asarray(kept).astype(int) == values).all()


# --- nothing used


@case_table(
    ("files", "code"),
    [
        ({"a.json": '{"_via_settings": {}, "_via_img_metadata": {}}'}, "foreign_labels"),
        ({"a.json": '{"objects": [{"classTitle": "x"}], "size": {}}'}, "foreign_labels"),
        ({"a.json": '{"items": [{"annotations": [{"label_id": 1}]}], "categories": {}}'}, "foreign_labels"),
        ({"a.tfrecord": "x"}, "foreign_labels"),
        ({"a.mat": "x"}, "foreign_labels"),
        (
            {"label/a.txt": "Car 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\n"},
            "foreign_labels",
        ),
        ({"gt.txt": "1,1,912,484,97,109,0,7,1\n"}, "foreign_labels"),
        ({"a.csv": "ImageID,Source,LabelName,XMin\n"}, "foreign_labels"),
        ({"a.json": '{"images": [{"file_name": "a.png"}], "annotations": [], "categories": []'}, "unreadable"),
    ],
)
def test_annotations_that_are_not_used_are_a_problem(tmp_path, files, code):
    parsed = read_folder(put(tmp_path, {"a.png": photo()} | files))

    assert (codes(parsed)[code], detect.is_unlabelled(parsed)) == (1, True)


def test_images_without_label_files_and_images_checked_empty_are_not_unlabelled(tmp_path):
    plain = read_folder(put(tmp_path / "a", {"a.png": picture(), "README.md": "x"}))
    empty = read_folder(put(tmp_path / "b", {"a.png": picture(), "a.xml": voc_xml("a.png")}))

    assert (detect.is_unlabelled(plain), detect.is_unlabelled(empty)) == (False, False)


def test_yaml_names_are_texts_whatever_they_look_like(tmp_path):
    for number, text in enumerate(
        ["names: [yes, no]", "names: {'0': yes, '1': no}", "x: &a [1]\nnames: [yes, no]\ny: *a"]
    ):
        parsed = read_folder(put(tmp_path / str(number), yolo_pairs() | {"data.yaml": text}))
        assert [info.name for info in parsed.classes] == ["yes", "no"], text
