"""The COCO writer before its judge: pycocotools must load, draw and score what we write."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from annotation.services import coco
from datasets.shapes import geometry
from tests import public_data
from tests.cases import case_table

INFO = {"version": "1", "description": "test"}
CLASSES = [coco.Category(1, "cat", "animal"), coco.Category(7, "dog", "animal")]
IMAGES = [coco.Image(1, "a/1.jpg", 100, 80, "train"), coco.Image(2, "b/1.jpg", 100, 80)]
# pycocotools has not caught up with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
SQUARE = [10.0, 10.0, 30.0, 10.0, 30.0, 30.0, 10.0, 30.0]


def written(**changes) -> tuple[dict, coco.Report]:
    parts = {"info": INFO, "categories": CLASSES, "images": IMAGES, "annotations": []} | changes
    out = io.StringIO()
    report = coco.write(out, **parts)
    return json.loads(out.getvalue()), report


def judge(data: dict, tmp_path: Path, kind: str) -> float:
    """AP of the file against itself."""
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(data))
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(path))
        for entry in truth.anns.values():
            assert truth.annToMask(entry).any()
        answers = [
            {"image_id": a["image_id"], "category_id": a["category_id"], "score": 1.0}
            | ({"bbox": a["bbox"]} if kind == "bbox" else {"segmentation": truth.annToRLE(a)})
            for a in data["annotations"]
        ]
        scores = COCOeval(truth, truth.loadRes(answers), kind)
        if max(len(ids) for ids in truth.imgToAnns.values()) > 100:
            scores.params.maxDets = [1, 10, 1000]
        scores.evaluate()
        scores.accumulate()
    precision = scores.eval["precision"][..., 0, -1]  # all sizes, most detections: what AP means
    return float(np.mean(precision[precision > -1]))


def test_coco_writer_gives_every_field_a_reader_needs():
    data, report = written(
        licenses=[{"id": 1, "name": "CC0", "url": ""}],
        annotations=[
            coco.Annotation(3, 1, 7, [geometry.box_ring(10, 10, 20, 20)], kind="bbox"),
            coco.Annotation(8, 1, 1, [SQUARE, [50, 50, 60, 50, 60, 60]]),
        ],
    )

    box, polygon = data["annotations"]
    assert data["info"]["version"] == "1"
    assert data["licenses"][0]["name"] == "CC0"
    assert data["categories"][1] == {"id": 7, "name": "dog", "supercategory": "animal"}
    assert data["images"] == [
        {"id": 1, "file_name": "a/1.jpg", "width": 100, "height": 80, "split": "train"},
        {"id": 2, "file_name": "b/1.jpg", "width": 100, "height": 80},
    ]
    assert box == {
        "id": 3,
        "image_id": 1,
        "category_id": 7,
        "segmentation": [[10, 10, 30, 10, 30, 30, 10, 30]],
        "area": 400,
        "bbox": [10, 10, 20, 20],
        "iscrowd": 0,
        "attributes": {"shape": "bbox"},
    }
    assert polygon["area"] == 450
    assert polygon["bbox"] == [10, 10, 50, 50]
    assert "attributes" not in polygon
    assert (report.images, report.annotations, report.categories, report.left_out) == (2, 2, 2, 0)


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_coco_writer_small_file_scores_one_against_itself(tmp_path, kind):
    data, _ = written(
        annotations=[
            coco.Annotation(1, 1, 1, [SQUARE]),
            coco.Annotation(2, 1, 7, [geometry.box_ring(40, 40, 21.5, 9.25)], kind="bbox"),
        ]
    )

    assert judge(data, tmp_path, kind) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_coco_writer_real_polygons_score_one_and_keep_their_areas(tmp_path, kind):
    given = json.loads(public_data.need("nuts", "coco", "trainval.json").read_text())
    first = {entry["id"]: entry["id"] + 1 for entry in given["images"]}
    data, report = written(
        categories=[coco.Category(c["id"], c["name"], c["supercategory"]) for c in given["categories"]],
        images=[coco.Image(first[i["id"]], i["file_name"], i["width"], i["height"]) for i in given["images"]],
        annotations=[
            coco.Annotation(n, first[a["image_id"]], a["category_id"], a["segmentation"])
            for n, a in enumerate(given["annotations"], 1)
        ],
    )

    assert (report.images, report.annotations, report.left_out) == (18, 165, 0)
    close = [
        abs(ours["area"] - theirs["area"]) <= 1e-3 * theirs["area"]
        for ours, theirs in zip(data["annotations"], given["annotations"], strict=True)
    ]
    assert sum(close) >= 0.99 * len(close)
    assert judge(data, tmp_path, kind) == pytest.approx(1.0, abs=1e-9)


def test_coco_writer_leaves_out_and_names_degenerate_shapes():
    data, report = written(
        annotations=[
            coco.Annotation(1, 1, 1, [[10, 10, 30, 30]]),
            coco.Annotation(2, 1, 1, [[10, 10, 20, 20, 30, 30]]),
            coco.Annotation(3, 1, 1, [[0, 0, 10, 10, 10, 0, 0, 10]]),
            coco.Annotation(4, 1, 1, [SQUARE]),
        ]
    )

    assert [a["id"] for a in data["annotations"]] == [4]
    assert [ident for ident, _ in report.refused] == [1, 2, 3]
    assert report.left_out == 3


def test_coco_writer_keeps_boxes_inside_the_image():
    data, _ = written(annotations=[coco.Annotation(1, 1, 1, [[-0.004, 10, 30, 10, 30, 80.005]])])

    assert data["annotations"][0]["bbox"] == [0, 10, 30, 70]


@case_table(
    "changes",
    [
        {"info": {}},
        {"categories": [coco.Category(1, "cat"), coco.Category(1, "dog")]},
        {"categories": [coco.Category(1, "cat"), coco.Category(2, "cat")]},
        {"images": [coco.Image(0, "a.jpg", 1, 1)]},
        {"images": [coco.Image(1, "a.jpg", 1, 1), coco.Image(2, "a.jpg", 1, 1)]},
        {"images": [coco.Image(1, "/a.jpg", 1, 1)]},
        {"images": [coco.Image(1, "../a.jpg", 1, 1)]},
        {"images": [coco.Image(1, "a\\b.jpg", 1, 1)]},
        {"images": [coco.Image(1, "a.jpg", 0, 1)]},
        {"images": [coco.Image(1, "a.jpg", 1.5, 1)]},
        {"annotations": [coco.Annotation(0, 1, 1, [SQUARE])]},
        {"annotations": [coco.Annotation(1, 1, 1, [SQUARE]), coco.Annotation(1, 1, 1, [SQUARE])]},
        {"annotations": [coco.Annotation(1, 9, 1, [SQUARE])]},
        {"annotations": [coco.Annotation(1, 1, 9, [SQUARE])]},
    ],
)
def test_coco_writer_stops_at_contradicting_rows(changes):
    with pytest.raises(coco.BadExport):
        written(**changes)


def test_coco_writer_keeps_names_in_any_script():
    data, _ = written(categories=[coco.Category(1, "红细胞", "血液")], images=[coco.Image(1, "数据/图 1.jpg", 10, 10)])

    assert data["categories"][0]["name"] == "红细胞"
    assert data["images"][0]["file_name"] == "数据/图 1.jpg"
