"""Every file of a data set is accounted for, and every format people have is read: good ones, odd ones, nasty ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from datasets.formats import tracing
from datasets.shapes import geometry
from datasets.shapes.rle import rle_runs
from tests import public_data
from tests.datasets.pictures import picture, put
from tests.datasets.read_folders import codes, fitted, mask_png, notes, read_folder, said, two_objects

# --- YOLO

YAML = "path: ../data\ntrain: images/train\nval: images/val\nnames:\n  0: cell\n  1: ring\n"
LAYOUTS = {
    "images/train beside labels/train": ("images/{}/{}.png", "labels/{}/{}.txt"),
    "train/images beside train/labels": ("{}/images/{}.png", "{}/labels/{}.txt"),
    "side by side": ("{}/{}.png", "{}/{}.txt"),
}


@pytest.mark.parametrize(("image", "label"), LAYOUTS.values(), ids=LAYOUTS)
def test_yolo_reader_reads_boxes_polygons_and_splits_of_every_layout(tmp_path, image, label):
    files: dict[str, bytes | str] = {"data.yaml": YAML}
    for split in ("train", "val"):
        files |= {image.format(split, name): picture() for name in "abc"}
        files[label.format(split, "a")] = "0 0.5 0.5 0.25 0.5\n1 0.1 0.1 0.5 0.1 0.5 0.9\n"
        files[label.format(split, "b")] = ""

    parsed = fitted(read_folder(put(tmp_path, files)), 40, 30)

    assert (parsed.format, codes(parsed), notes(parsed)) == ("yolo", {}, {})
    assert parsed.counts()["splits"] == {"train": 3, "val": 3}
    assert sorted(said(parsed).values()) == [(False, 0)] * 2 + [(True, 0)] * 2 + [(True, 2)] * 2
    first = parsed.images[0].shapes
    assert [(shape.kind, shape.bbox) for shape in first] == [
        ("bbox", (15.0, 7.5, 10.0, 15.0)),
        ("polygon", (4.0, 3.0, 16.0, 24.0)),
    ]
    assert first[1].area == pytest.approx(geometry.area(first[1].segmentation))
    assert [(info.id, info.name) for info in parsed.classes] == [(1, "cell"), (2, "ring")]


@pytest.mark.parametrize(
    ("lists", "names"),
    [
        ({"classes.txt": "cell\nring\n"}, ["cell", "ring"]),
        ({"obj.names": "cell\nring\n"}, ["cell", "ring"]),
        ({"data.yaml": "names: [cell, ring]\n"}, ["cell", "ring"]),
        ({"data.yaml": "nc: 2\n"}, ["1"]),
        ({}, ["1"]),
    ],
)
def test_yolo_reader_names_classes_by_yaml_or_list_or_number(tmp_path, lists, names):
    put(tmp_path, lists | {"images/a.png": picture(), "labels/a.txt": "1 0.5 0.5 0.2 0.2"})

    parsed = read_folder(tmp_path)

    assert [info.name for info in parsed.classes] == names
    assert parsed.images[0].shapes[0].class_id == 2


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB + "names: [cell]",
        "names: !!python/object/apply:os.system ['touch owned']",
        "names: [" * 5000,
        "\0",
        "names: {1.5: x}",
    ],
    ids=["aliases", "object", "deep", "nul", "odd keys"],
)
def test_yolo_reader_takes_no_harm_from_a_nasty_yaml(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, {"data.yaml": text, "images/a.png": picture(), "labels/a.txt": "0 0.5 0.5 0.2 0.2"})

    parsed = read_folder(tmp_path)

    name = "cell" if text.startswith(BOMB) else "0"
    assert ([info.name for info in parsed.classes], len(parsed.images[0].shapes)) == ([name], 1)
    assert not (tmp_path / "owned").exists()


def test_yolo_reader_counts_what_it_cannot_use(tmp_path):
    lines = "0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0 0.2\n0 nan 0.5 0.2 0.2\nx\n"
    lines += "0 0.5 0.5 0.2 0.2 0.9\n0 0 0 1 0 1 1 0\n"
    good = "".join(f"0 0.5 0.5 0.2 0.{n}\n" for n in range(1, 6))
    put(tmp_path, {"images/a.png": picture(), "labels/a.txt": good + lines, "labels/gone.txt": "0 0.5 0.5 0.2 0.2"})

    parsed = read_folder(tmp_path)

    assert codes(parsed) == {
        "same_line": 2, "degenerate_box": 1, "bad_line": 3, "missing_image": 1, "lost_shapes": 1, "unnamed_class": 1,
    }  # fmt: skip
    assert notes(parsed) == {"score": 1}


def test_text_beside_images_that_is_no_yolo_is_named_and_not_read(tmp_path):
    put(tmp_path, {"a.png": picture(), "a.txt": "a photo of a cell", "b.png": picture(), "b.txt": "0 0.5 0.5 0.1 0.1"})

    parsed = read_folder(tmp_path)

    assert (parsed.format, notes(parsed), codes(parsed)) == ("images", {"other_file": 1}, {"unread_labels": 1})


# --- LabelMe


def labelme(*shapes: dict[str, Any], name: str = "a.png", **more: Any) -> str:
    data = {"version": "5.0", "flags": {}, "shapes": list(shapes), "imagePath": name, "imageData": None}
    return json.dumps(data | {"imageHeight": 30, "imageWidth": 40} | more)


def shape(kind: str, *points: list[float], label: str = "cell", **more: Any) -> dict[str, Any]:
    return {"label": label, "shape_type": kind, "points": list(points), "flags": {}} | more


def test_labelme_reader_reads_polygons_and_rectangles_and_counts_the_rest(tmp_path):
    told = labelme(
        shape("polygon", [1, 1], [9, 1], [9, 9], flags={"difficult": True, "old": False}),
        shape("rectangle", [20, 20], [10, 5], label="ring"),
        shape("circle", [5, 5], [7, 7]),
        shape("point", [5, 5]),
        shape("polygon", [1, 1], [2, 2]),
        shape("polygon", [1, 1], [2, 2], [3, 3]),
        shape("polygon", [1, 1], [9, 1], [9, 9], label=""),
        shape("polygon", [1, 1], [float("inf"), 1], [9, 9]),
    )
    put(tmp_path, {"a.png": picture(), "a.json": told, "b.png": picture(), "c.png": picture()})
    put(tmp_path, {"b.json": labelme(name="b.png"), "d.json": labelme(shape("point", [1, 1]), name="d.png")})

    parsed = read_folder(tmp_path)

    assert (parsed.format, said(parsed)) == ("labelme", {"a.png": (True, 2), "b.png": (True, 0), "c.png": (False, 0)})
    first, second = parsed.images[0].shapes
    assert (first.kind, first.area, first.attributes) == ("polygon", 32.0, {"difficult": True})
    assert (second.kind, second.bbox) == ("bbox", (10.0, 5.0, 10.0, 15.0))
    assert [(info.id, info.name) for info in parsed.classes] == [(1, "cell"), (2, "ring")]
    assert codes(parsed) == {
        "other_shape": 2, "short_polygon": 2, "degenerate_polygon": 1, "no_class": 1, "missing_image": 1,
        "lost_shapes": 1,
    }  # fmt: skip


def test_labelme_reader_joins_polygons_of_one_group(tmp_path):
    parts = [shape("polygon", [x, 1], [x + 4, 1], [x + 4, 5], group_id=1) for x in (1, 20)]
    put(tmp_path, {"a.png": picture(), "a.json": labelme(*parts)})

    (joined,) = read_folder(tmp_path).images[0].shapes

    assert (len(joined.segmentation), joined.area, joined.bbox) == (2, 16.0, (1.0, 1.0, 23.0, 4.0))


def test_labelme_reader_reads_nuts_as_its_coco_file_has_them(tmp_path):
    nuts = public_data.need("nuts")
    files = {path.name: path.read_bytes() for path in (nuts / "labelme").iterdir()}
    files |= {path.name: path.read_bytes() for path in (nuts / "coco/images").iterdir()}

    parsed = read_folder(put(tmp_path, files))

    stored = json.loads((nuts / "coco/trainval.json").read_text())
    assert (parsed.format, len(parsed.images), codes(parsed)) == ("labelme", 18, {})
    assert sum(1 for _shape in parsed.shapes()) == len(stored["annotations"]) == 165
    assert sum(s.area for s in parsed.shapes()) == pytest.approx(
        sum(a["area"] for a in stored["annotations"]), rel=1e-3
    )


# --- masks


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # pycocotools and numpy 2
def test_tracing_gives_exactly_the_pixels_back_holes_included():
    random = np.random.default_rng(7)
    for _ in range(200):
        height, width = random.integers(1, 14, 2)
        pixels = random.random((height, width)) < random.choice([0.2, 0.5, 0.8])
        rings = tracing.outlines(pixels)
        assert rings is not None
        drawn = (
            coco_mask.decode(coco_mask.merge(coco_mask.frPyObjects(rings, height, width))) if rings else pixels & False
        )
        assert (drawn == pixels).all()
        assert sum(abs(geometry.signed_area(ring)) for ring in rings) == pixels.sum()
        assert all(geometry.first_crossing(ring) is None for ring in rings)
        _size, runs = rle_runs(tracing.runs(pixels))
        unrolled = np.repeat(np.arange(len(runs)) % 2, runs).reshape(pixels.shape, order="F")
        assert (unrolled == pixels).all()


def test_tracing_gives_up_on_noise_within_its_limits():
    noise = np.indices((700, 700)).sum(axis=0) % 2 == 0

    assert tracing.outlines(noise) is None


@pytest.mark.parametrize("mask", ["masks/a.png", "a_mask.png", "SegmentationClass/a.png", "labels/a.png"])
def test_mask_reader_makes_a_polygon_of_each_part_with_its_hole(tmp_path, mask):
    image = "a.jpg" if "/" not in mask else "images/a.jpg"
    put(
        tmp_path,
        {image: picture(kind="JPEG"), mask: mask_png(two_objects()), image.replace("a.", "b."): picture(kind="JPEG")},
    )

    parsed = read_folder(tmp_path)

    assert (parsed.format, said(parsed)) == ("masks", {"a.jpg": (True, 2), "b.jpg": (False, 0)})
    assert [(s.kind, s.area, s.bbox) for s in parsed.shapes()] == [
        ("polygon", 91.0, (2.0, 2.0, 10.0, 10.0)),
        ("polygon", 100.0, (20.0, 15.0, 10.0, 10.0)),
    ]
    assert [(info.id, info.name) for info in parsed.classes] == [(1, "1"), (2, "2")]


def test_mask_reader_names_classes_by_colour_table_palette_or_list(tmp_path):
    palette = [0, 0, 0, 128, 0, 0, 0, 128, 0]
    colours = np.zeros((30, 40, 3), np.uint8)
    colours[two_objects() == 1] = (128, 0, 0)
    colours[two_objects() == 2] = (0, 128, 0)
    table = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncell:128,0,0::\nring:0,128,0::\n"
    for name, mask, lists in (
        ("rgb", mask_png(colours), {"labelmap.txt": table}),
        ("palette", mask_png(two_objects(), palette), {"labelmap.txt": table}),
        ("list", mask_png(two_objects()), {"classes.txt": "background\ncell\nring\n"}),
        ("csv", mask_png(colours), {"class_dict.csv": "name,r,g,b\ncell,128,0,0\nring,0,128,0\n"}),
    ):
        folder = put(tmp_path / name, lists | {"images/a.png": picture(), "masks/a.png": mask})

        parsed = read_folder(folder)

        assert sorted(info.name for info in parsed.classes) == ["cell", "ring"], name
        assert len(parsed.images[0].shapes) == 2


def test_mask_reader_takes_255_as_border_unless_it_is_all_there_is(tmp_path):
    bordered = two_objects()
    bordered[0] = 255
    lone = np.where(two_objects() == 1, 255, 0).astype(np.uint8)
    put(tmp_path / "a", {"images/a.png": picture(), "masks/a.png": mask_png(bordered)})
    put(tmp_path / "b", {"images/a.png": picture(), "masks/a.png": mask_png(lone)})

    first, second = read_folder(tmp_path / "a"), read_folder(tmp_path / "b")

    assert ([info.name for info in first.classes], notes(first)) == (["1", "2"], {"void_pixels": 1})
    assert ([info.name for info in second.classes], len(second.images[0].shapes)) == (["object"], 1)


def test_mask_reader_names_masks_it_cannot_use(tmp_path):
    noise = np.random.default_rng(0).integers(0, 2000, (30, 40)).astype(np.uint16)
    put(
        tmp_path,
        {f"images/{n}.png": picture() for n in "abc"}
        | {"masks/a.png": mask_png(two_objects()), "masks/b.png": mask_png(two_objects())[:80]}
        | {"masks/c.png": mask_png(noise), "masks/gone.png": mask_png(two_objects())}
        | {"masks/d.png": mask_png(two_objects()), "images/d.png": picture(), "masks/e.png": mask_png(two_objects())}
        | {"images/e.png": picture(), "images/f.png": picture(), "masks/f.png": mask_png(two_objects())},
    )

    parsed = read_folder(tmp_path)

    assert codes(parsed) == {"bad_mask_image": 2, "mask_without_image": 1}
    assert said(parsed)["b.png"] == (False, 0)


def test_photographs_in_a_folder_called_mask_are_a_class_and_no_masks(tmp_path):
    random = np.random.default_rng(3)

    def photo() -> bytes:
        return mask_png(random.integers(0, 255, (30, 40, 3)).astype(np.uint8))

    put(tmp_path, {f"{label}/{n}.png": photo() for label in ("mask", "no mask") for n in range(4)})

    parsed = read_folder(tmp_path)

    assert (parsed.format, [info.name for info in parsed.classes]) == ("folders", ["mask", "no mask"])
