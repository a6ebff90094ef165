"""Real polygons out and in again through each format the platform writes, scored against what they were."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tests import public_data
from tests.datasets.helpers import imported, zipped_folder
from tests.factories import datasets as make

pytestmark = [pytest.mark.django_db, pytest.mark.proof]


def exported(client, version, form: str) -> bytes:
    answer = client.get(f"/datasets/{version.dataset_id}/v{version.number}/download/?as={form}")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)


def coco_of(version) -> dict:
    return json.loads((version.path / "annotations.json").read_text())


def average_precision(truth: dict, found: dict, kind: str) -> float:
    """COCO's AP of `found` as detections on `truth`; images go by the end of their names, classes by theirs."""
    images = {image["file_name"].rsplit("/", 1)[-1]: image["id"] for image in truth["images"]}
    names = {image["id"]: image["file_name"].rsplit("/", 1)[-1] for image in found["images"]}
    classes = {entry["name"]: entry["id"] for entry in truth["categories"]}
    called = {entry["id"]: entry["name"] for entry in found["categories"]}
    rows = [
        {
            "image_id": images[names[one["image_id"]]],
            "category_id": classes[called[one["category_id"]]],
            "score": 1.0,
            **({"segmentation": one["segmentation"]} if kind == "segm" else {"bbox": one["bbox"]}),
        }
        for one in found["annotations"]
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        known = COCO()
        known.dataset = truth
        known.createIndex()
        if kind == "segm":  # polygons are no detections for COCO until they are masks
            for row in rows:
                info = known.imgs[row["image_id"]]
                row["segmentation"] = known.annToRLE({**row, "image_id": info["id"], "iscrowd": 0})
        judge = COCOeval(known, known.loadRes(rows), kind)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return float(judge.stats[0])


def areas(coco: dict) -> np.ndarray:
    """Areas of all objects, by image and then by size."""
    names = {image["id"]: image["file_name"].rsplit("/", 1)[-1] for image in coco["images"]}
    rows = sorted((names[one["image_id"]], float(one["area"])) for one in coco["annotations"])
    return np.array([area for _name, area in rows])


@pytest.mark.parametrize(
    ("form", "kind", "least", "off"),
    [
        ("zip", "segm", 0.9999, 1e-3),
        ("yolo-seg", "segm", 0.9999, 1e-3),
        ("tar", "bbox", 0.9999, None),
        ("yolo", "bbox", 0.9999, None),
        ("voc", "bbox", 0.95, None),  # its boxes are whole pixels
    ],
)
def test_real_objects_come_back_through_every_format(as_alice, alice, form, kind, least, off):
    first = imported(make.dataset(alice, "first"), zipped_folder(public_data.need("nuts", "coco"))).version

    second = imported(make.dataset(alice, "second"), exported(as_alice, first, form)).version

    truth, found = coco_of(first), coco_of(second)
    score = average_precision(truth, found, kind)
    print(f"{form}: {len(found['annotations'])} objects on {len(found['images'])} images, {kind} AP {score:.4f}")
    assert len(found["annotations"]) == len(truth["annotations"])
    assert score >= least
    if off is not None:
        wrong = float(np.max(np.abs(areas(found) / areas(truth) - 1)))
        print(f"{form}: areas differ by {wrong:.1e} at most")
        assert wrong <= off
