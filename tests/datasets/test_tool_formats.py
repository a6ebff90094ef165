"""CVAT for images and Label Studio: what they export is read, what has no kind of shape here is counted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from datasets.formats import brush_rle
from datasets.shapes.rle import rle_runs
from tests.datasets.pictures import picture, put, voc_xml
from tests.datasets.read_folders import codes, fitted, notes, read_folder, said

# --- CVAT


def cvat(*images: str, labels: tuple[str, ...] = ("ring", "cell")) -> str:
    named = "".join(f"<label><name>{name}</name></label>" for name in labels)
    meta = f"<meta><job><labels>{named}</labels></job></meta>"
    return f"<annotations><version>1.1</version>{meta}{''.join(images)}</annotations>"


def image(name: str, *shapes: str, **more: Any) -> str:
    fields = "".join(f' {key}="{value}"' for key, value in ({"width": 40, "height": 30} | more).items())
    return f'<image id="0" name="{name}"{fields}>{"".join(shapes)}</image>'


BOX = '<box label="cell" occluded="1" xtl="1" ytl="2" xbr="11" ybr="12" z_order="0" group_id="3">{}</box>'


def test_cvat_reader_reads_every_kind_of_area_with_its_attributes(tmp_path):
    attributes = '<attribute name="size">big</attribute><attribute name="alive">true</attribute>'
    shapes = [
        BOX.format(attributes),
        '<box label="cell" xtl="10" ytl="10" xbr="20" ybr="14" rotation="90"/>',
        '<polygon label="ring" points="1.0,1.0;9.0,1.0;9.0,9.0"/>',
        '<ellipse label="ring" cx="20" cy="15" rx="10" ry="5"/>',
        '<mask label="cell" rle="1,2,2,1" left="4" top="3" width="3" height="2"/>',
    ]
    xml = cvat(image("images/a.png", *shapes, subset="Train"), image("images/b.png"))
    put(tmp_path, {"annotations.xml": xml} | {f"images/{name}.png": picture() for name in "abc"})

    parsed = fitted(read_folder(tmp_path), 40, 30)

    assert (parsed.format, said(parsed)) == ("cvat", {"a.png": (True, 5), "b.png": (True, 0), "c.png": (False, 0)})
    assert [(info.id, info.name) for info in parsed.classes] == [(1, "ring"), (2, "cell")]
    plain, turned, polygon, ellipse, mask = parsed.images[0].shapes
    assert (plain.kind, plain.bbox, parsed.images[0].split) == ("bbox", (1.0, 2.0, 10.0, 10.0), "train")
    assert plain.attributes == {"shape": "bbox", "size": "big", "alive": True, "occluded": True, "group_id": 3}
    assert (turned.kind, turned.bbox, turned.area) == ("polygon", (13.0, 7.0, 4.0, 10.0), pytest.approx(40))
    assert (polygon.area, ellipse.area) == (32.0, pytest.approx(np.pi * 50, rel=0.002))
    size, runs = rle_runs(mask.segmentation)
    pixels = np.repeat(np.arange(len(runs)) % 2, runs).reshape(size[::-1]).T
    assert sorted(zip(*np.nonzero(pixels), strict=True)) == [(3, 5), (3, 6), (4, 6)]
    assert (codes(parsed), notes(parsed)) == ({}, {"ellipse": 1})


def test_cvat_reader_skips_and_counts_what_has_no_kind_here(tmp_path):
    shapes = [
        '<polyline label="cell" points="1,1;5,5"/>',
        '<points label="cell" points="1,1"/>',
        '<skeleton label="cell"><points label="nose" points="1,1"/></skeleton>',
        '<cuboid label="cell" xtl1="1" ytl1="1"/>',
        '<tag label="night"/>',
        '<box label="" xtl="1" ytl="2" xbr="11" ybr="12"/>',
        '<box label="cell" xtl="nan" ytl="2" xbr="11" ybr="12"/>',
        '<box label="cell" xtl="5" ytl="2" xbr="5" ybr="12"/>',
        '<polygon label="cell" points="1,1;x,2;3,3"/>',
        '<mask label="cell" rle="1,2,9" left="4" top="3" width="3" height="2"/>',
        BOX,
    ]
    xml = cvat(image("a.png", *shapes), image("gone.png", BOX))
    put(tmp_path, {"annotations.xml": xml, "a.png": picture()})

    parsed = read_folder(tmp_path)

    assert said(parsed) == {"a.png": (True, 1)}
    assert codes(parsed) == {
        "other_shape": 4, "tag": 1, "no_class": 1, "bad_shape": 3, "no_area": 1, "missing_image": 1, "lost_shapes": 1,
    }  # fmt: skip
    assert parsed.problems.skipped == 11


def test_cvat_tags_alone_are_a_classification(tmp_path):
    xml = cvat(image("a.png", '<tag label="day"/>'), image("b.png", '<tag label="night"/>'), labels=("day", "night"))
    put(tmp_path, {"annotations.xml": xml, "a.png": picture(), "b.png": picture(), "c.png": picture()})

    parsed = read_folder(tmp_path)

    assert (parsed.task, {item.path: item.label for item in parsed.images}) == (
        "classification",
        {"a.png": 0, "b.png": 1},
    )
    assert codes(parsed) == {"image_without_class": 1}


def test_cvat_video_is_recognized_and_counted(tmp_path):
    track = '<track id="0" label="cell"><box frame="0" xtl="1" ytl="1" xbr="5" ybr="5"/></track>'
    put(tmp_path, {"annotations.xml": cvat(track), "a.png": picture()})

    assert codes(read_folder(tmp_path)) == {"video_track": 1}


# --- Label Studio


def task(name: str, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    annotation = {"id": 1, "result": list(results), "updated_at": "2026-01-01T00:00:00Z"}
    return {"id": 1, "data": {"image": name}, "annotations": [annotation]} | more


def result(kind: str, value: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "original_width": 40, "original_height": 30, "value": value} | more


RECTANGLE = result(
    "rectanglelabels", {"x": 25, "y": 10, "width": 50, "height": 40, "rotation": 0, "rectanglelabels": ["cell"]}
)


def studio(root, *tasks: Any, images: str = "ab"):
    return put(root, {"project-1.json": json.dumps(list(tasks))} | {f"images/{n}.png": picture() for n in images})


def packed(pixels: np.ndarray) -> list[int]:
    """RGBA pixels as Label Studio packs them: head, then literal and repeated runs in turn."""
    values = np.repeat(pixels.reshape(-1, 1), 4, axis=1).reshape(-1) * 255
    bits = format(len(values), "032b") + format(7, "05b") + "".join(format(size, "04b") for size in (2, 3, 8, 15))
    at = 0
    while at < len(values):
        same = int(np.argmax(values[at:] != values[at])) or len(values) - at
        if same > 3:
            bits += "1" + "11" + format(same - 1, "016b") + format(values[at], "08b")
            at += same
        else:
            some = min(8, len(values) - at)
            bits += "0" + "00" + format(some - 1, "03b") + "".join(format(v, "08b") for v in values[at : at + some])
            at += some
    bits += "0" * (-len(bits) % 8)
    return [int(bits[place : place + 8], 2) for place in range(0, len(bits), 8)]


@pytest.mark.parametrize("seed", range(5))
def test_brush_masks_unpack_to_the_pixels_that_were_packed(seed):
    pixels = np.random.default_rng(seed).random((13, 17)) < [0.5, 0.1, 0.9, 0.0, 1.0][seed]

    assert (brush_rle.decode(packed(pixels), 17, 13) == pixels).all()


@pytest.mark.parametrize("broken", [[1, 2, 3], [256] * 20, "abc", [0] * 100, packed(np.ones((3, 3), bool))[:9]])
def test_brush_masks_that_are_none_are_refused(broken):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        brush_rle.decode(broken, 3, 3)


def test_label_studio_reader_reads_rectangles_polygons_ellipses_and_brushes(tmp_path):
    pixels = np.zeros((30, 40), bool)
    pixels[3:9, 5:20] = True
    tasks = [
        task(
            "/data/upload/1/3f2a1b0c-a.png",
            RECTANGLE,
            result("rectanglelabels", {"x": 50, "y": 50, "width": 10, "height": 10, "rotation": 90,
                                       "rectanglelabels": ["cell"]}),
            result("polygonlabels", {"points": [[0, 0], [50, 0], [50, 50]], "polygonlabels": ["ring"]}),
            result("ellipselabels", {"x": 50, "y": 50, "radiusX": 10, "radiusY": 10, "ellipselabels": ["ring"]}),
            result("brushlabels", {"format": "rle", "rle": packed(pixels), "brushlabels": ["cell"]}),
        ),
        task("https://host/files/b.png"),
    ]  # fmt: skip

    parsed = fitted(read_folder(studio(tmp_path, *tasks, images="abc")), 40, 30)

    assert (parsed.format, said(parsed)) == (
        "label-studio", {"a.png": (True, 5), "b.png": (True, 0), "c.png": (False, 0)},
    )  # fmt: skip
    plain, turned, polygon, ellipse, brush = parsed.images[0].shapes
    assert (plain.kind, plain.bbox) == ("bbox", (10.0, 3.0, 20.0, 12.0))
    assert (turned.kind, turned.bbox) == ("polygon", (17.0, 15.0, 3.0, 4.0))
    assert (polygon.bbox, ellipse.area) == ((0.0, 0.0, 20.0, 15.0), pytest.approx(np.pi * 12, rel=0.002))
    assert (brush.kind, brush.bbox, brush.area) == ("mask", (5.0, 3.0, 15.0, 6.0), 90.0)
    assert codes(parsed) == {}
    assert notes(parsed) == {"ellipse": 1, "matched_prefix": 1, "matched_suffix": 1}


def test_label_studio_reader_reads_the_short_form_and_regions_whose_labels_come_apart(tmp_path):
    flat = {"x": 25, "y": 10, "width": 50, "height": 40, "original_width": 40, "original_height": 30}
    short = [{"image": "images/a.png", "label": [flat | {"rectanglelabels": ["cell"]}], "annotator": 1}]
    region = [
        result("rectangle", {"x": 25, "y": 10, "width": 50, "height": 40}, id="x1"),
        result("labels", {"x": 25, "y": 10, "width": 50, "height": 40, "labels": ["cell"]}, id="x1"),
    ]

    for tasks in (short, [task("images/a.png", *region)]):
        parsed = read_folder(studio(tmp_path / str(len(tasks[0])), *tasks))
        assert said(parsed)["a.png"] == (True, 1)
        assert parsed.images[0].shapes[0].bbox == (10.0, 3.0, 20.0, 12.0)


def test_label_studio_choices_alone_are_a_classification(tmp_path):
    tasks = [
        task(f"images/{name}.png", result("choices", {"choices": [label]}))
        for name, label in zip("ab", ("x", "y"), strict=True)
    ]

    parsed = read_folder(studio(tmp_path, *tasks))

    assert (parsed.task, [item.label for item in parsed.images]) == ("classification", [0, 1])


def test_label_studio_reader_skips_and_counts_the_rest(tmp_path):
    older = {"id": 2, "result": [RECTANGLE], "updated_at": "2025-01-01T00:00:00Z"}
    cancelled = {"id": 3, "result": [RECTANGLE], "was_cancelled": True}
    first = task(
        "images/a.png",
        RECTANGLE,
        result("keypointlabels", {"x": 1, "y": 1, "width": 1, "keypointlabels": ["nose"]}),
        result("choices", {"choices": ["night"]}),
        result("rectanglelabels", {"x": 1, "y": None, "width": 1, "height": 1, "rectanglelabels": ["cell"]}),
        result("rectanglelabels", {"x": 1, "y": 1, "width": 0, "height": 1, "rectanglelabels": ["cell"]}),
        result("rectanglelabels", {"x": 1, "y": 1, "width": 5, "height": 1, "rectanglelabels": []}),
        result("brushlabels", {"rle": [1], "brushlabels": ["cell"]}),
    )
    first["annotations"] += [older, cancelled]
    second = task("images/b.png", annotations=[], predictions=[{"result": [RECTANGLE]}])
    gone = task("images/gone.png", RECTANGLE)

    parsed = read_folder(studio(tmp_path, first, second, gone, "odd"))

    assert said(parsed) == {"a.png": (True, 1), "b.png": (False, 0)}
    assert codes(parsed) == {
        "other_shape": 1, "tag": 1, "bad_shape": 2, "no_area": 1, "no_class": 1, "several_annotations": 1,
        "predictions": 1, "missing_image": 1, "lost_shapes": 1, "bad_annotation": 1,
    }  # fmt: skip
    assert parsed.problems.skipped == 10


def test_voc_parts_and_further_boxes_of_an_object_are_counted(tmp_path):
    inner = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></part>"
    more = "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>8</xmax><ymax>8</ymax></bndbox>"
    xml = voc_xml("a.png", ("person", 1, 1, 9, 9)).replace("</object>", f"{inner}{more}</object>")

    parsed = read_folder(put(tmp_path, {"a.png": picture(), "a.xml": xml}))

    assert (said(parsed), codes(parsed), parsed.problems.skipped) == ({"a.png": (True, 1)}, {"other_shape": 2}, 2)
