"""Segmentation at work: masks as runs, answers in a picture's own pixels, figures from stored masks."""

from __future__ import annotations

import base64
import io
import json
import time

import numpy as np
import pytest
from django.urls import reverse
from faster_coco_eval.core import mask as coco_masks
from PIL import Image
from pycocotools import mask as pycoco

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.samples import ground_truth
from inference.kit.task_kinds.segmentation import runs, scoring, truth_maps
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny, versions
from tests.inference.running import a_run

RED, GREEN = 11, 12  # class ids of tests/inference/versions.py


def shape(class_id: int, x: float, y: float, w: float, h: float, **more: object) -> dict[str, object]:
    """A rectangle with an outline."""
    ring = [x, y, x + w, y, x + w, y + h, x, y + h]
    return {"category_id": class_id, "bbox": [x, y, w, h], "area": w * h, "segmentation": [ring], **more}


# ---- runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["noise", "blocks", "empty", "full"])
def test_runs_are_written_and_read_as_pycocotools_does(kind):
    rng = np.random.default_rng(3)
    noise = rng.random((37, 53))
    mask = {
        "noise": noise < 0.4,
        "blocks": np.kron(rng.random((8, 11)) < 0.5, np.ones((5, 5)))[:37, :53] > 0,
        "empty": noise < 0,
        "full": noise < 2,
    }[kind]

    made = runs.encode(mask)

    assert made["counts"] == pycoco.encode(np.asfortranarray(mask, np.uint8))["counts"].decode()
    assert (runs.decode(made) == mask).all()


# ---- answers -------------------------------------------------------------------------------------------------


async def answer_of(folder, picture: bytes, **requested: float) -> dict:
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        return await service.predict(picture, Requested(**requested), Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()


async def test_segmenter_answers_masks_in_the_pixels_of_the_picture(tmp_path):
    picture = pictures.with_boxes({(0, 0, 64, 128): "red", (96, 32, 128, 64): "green"})

    answer = await answer_of(tiny.segmenter(tmp_path), picture)

    red, green = answer["predictions"]
    assert (red["name"], green["name"]) == ("red", "green")
    assert red["share"] == pytest.approx(0.5, abs=0.04)
    assert green["box"] == pytest.approx([96, 32, 128, 64], abs=3)
    assert red["score"] > 0.99
    mask = coco_masks.decode(red["mask"])
    assert mask.shape == (128, 128)
    assert mask[:, :60].all()
    assert not mask[:, 68:].any()


async def test_segmenter_answers_a_lying_picture_without_its_frame(tmp_path):
    picture = pictures.with_boxes({(0, 0, 100, 50): "red"}, size=(200, 50))

    answer = await answer_of(tiny.segmenter(tmp_path, resize="letterbox"), picture)

    [red] = answer["predictions"]
    assert red["mask"]["size"] == [50, 200]
    assert red["share"] == pytest.approx(0.5, abs=0.04)


async def test_segmenter_leaves_out_classes_it_is_less_sure_of_than_asked(tmp_path):
    faint = np.zeros((64, 64, 3), np.uint8)
    faint[:, :32, 0] = 110  # red that is hardly more than ground
    picture = pictures.encoded(Image.fromarray(faint))
    folder = tiny.segmenter(tmp_path)

    assert [prediction["name"] for prediction in (await answer_of(folder, picture))["predictions"]] == ["red"]
    assert (await answer_of(folder, picture, score_threshold=0.95))["predictions"] == []


# ---- truth ---------------------------------------------------------------------------------------------------


def test_truth_map_draws_smaller_shapes_upon_larger_ones_and_leaves_crowds_out():
    shapes = [shape(GREEN, 4, 4, 4, 4), shape(RED, 0, 0, 16, 10), shape(RED, 10, 0, 10, 20, iscrowd=1)]

    drawn = truth_maps.draw(shapes, (20, 20), {RED: 1, GREEN: 2}, boxes="ellipse")

    assert drawn[5, 5] == 2
    assert drawn[1, 1] == drawn[5, 12] == 1
    assert drawn[15, 15] == truth_maps.IGNORED
    assert drawn[15, 2] == truth_maps.GROUND


@pytest.mark.parametrize(("boxes", "corner", "centre"), [("ellipse", 0, 1), ("whole", 1, 1), ("ignore", 255, 255)])
def test_truth_map_lets_something_stand_for_a_box(boxes, corner, centre):
    box = shape(RED, 2, 2, 16, 16, attributes={"shape": "bbox"})

    drawn = truth_maps.draw([box], (20, 20), {RED: 1}, boxes=boxes)

    assert (drawn[2, 2], drawn[10, 10]) == (corner, centre)


def test_truth_map_reads_masks_of_both_kinds_of_runs():
    mask = np.zeros((20, 30), bool)
    mask[3:9, 5:25] = True
    plain = {"size": [20, 30], "counts": [103, *([6, 14] * 20)[:-1], 117 - 6]}
    plain["counts"][-1] = 600 - sum(plain["counts"][:-1])
    item = {"category_id": RED, "bbox": [5, 3, 20, 6], "area": 120}

    for counts in (runs.encode(mask), plain):
        drawn = truth_maps.draw([{**item, "segmentation": counts}], (30, 20), {RED: 1}, boxes="whole")
        assert ((drawn == 1) == mask).all()


# ---- figures -------------------------------------------------------------------------------------------------


@pytest.fixture
def segmenting(tmp_path):
    return a_run(tmp_path / "run", tiny.segmenter(tmp_path / "model"), versions.detection(tmp_path / "data"))


def test_evaluator_figures_of_a_segmenter_are_those_counted_anew_from_its_masks(segmenting):
    evaluation = evaluate(segmenting)

    truth = ground_truth.read(segmenting.dataset, "test")
    results = json.loads((segmenting.outputs / "predictions.json").read_text())
    there, predicted = np.zeros((5, 128, 128), int), np.zeros((5, 128, 128), int)
    for index, sample in enumerate(truth.samples):
        own = [a for a in truth.coco["annotations"] if a["image_id"] == sample.id]
        there[index] = truth_maps.draw(own, (128, 128), {11: 1, 12: 2, 13: 3}, boxes="ellipse")
        for result in results:
            if result["image_id"] == sample.id:
                predicted[index][coco_masks.decode(result["segmentation"]) > 0] = result["category_id"] - 10
    ious = [((there == n) & (predicted == n)).sum() / ((there == n) | (predicted == n)).sum() for n in range(4)]
    assert evaluation["summary"]["miou"] == pytest.approx(np.mean(ious))
    assert [entry["iou"] for entry in evaluation["classes"]] == pytest.approx(ious[1:])
    assert evaluation["summary"]["pixel_accuracy"] == pytest.approx((there == predicted).mean())
    assert 0.2 < evaluation["summary"]["miou"] < 0.99
    matrix = np.array(evaluation["confusion"]["matrix"])
    assert matrix.sum() == there.size
    assert matrix[0, 3] == ((there == 1) & (predicted == 0)).sum()  # red that was answered as ground, which stands last


def test_evaluator_shows_where_a_segmenter_is_wrong(segmenting):
    evaluation = evaluate(segmenting)

    images = [json.loads(line) for line in (segmenting.outputs / "images.jsonl").read_text().splitlines()]
    matrix = np.array(evaluation["confusion"]["matrix"])
    cells = {cell for image in images for cell in image["cells"]}
    assert cells == {f"{t},{a}" for t, a in zip(*np.nonzero(matrix), strict=True)}
    assert [image["badness"] for image in images] == sorted((image["badness"] for image in images), reverse=True)
    shown = Image.open(io.BytesIO(base64.b64decode(images[0]["errors"])))
    assert (shown.mode, shown.size) == ("P", (128, 128))
    wrong = np.asarray(shown) != scoring.RIGHT
    assert wrong.mean() == pytest.approx(1 - images[0]["accuracy"], abs=1e-6)


def test_evaluator_scores_masks_that_are_the_truth_one(tmp_path):
    truth = ground_truth.read(versions.detection(tmp_path), "test")
    lines = []
    for sample in truth.samples:
        own = [a for a in truth.coco["annotations"] if a["image_id"] == sample.id]
        drawn = truth_maps.draw(own, (128, 128), {11: 11, 12: 12, 13: 13}, boxes="whole")
        masks = [{"class_id": n, "score": 1, "mask": runs.encode(drawn == n)} for n in (11, 12, 13)]
        lines.append({"path": sample.path, "id": sample.id, "boxes": "whole", "masks": masks})

    evaluation, images = scoring.evaluate(truth, lines)

    assert set(evaluation["summary"].values()) == {1.0}
    assert {image["badness"] for image in images} == {0}


def test_evaluator_scores_a_segmenter_that_finds_nothing_by_the_ground_alone(tmp_path):
    truth = ground_truth.read(versions.detection(tmp_path), "test")
    lines = [{"path": s.path, "id": s.id, "boxes": "whole", "masks": []} for s in truth.samples]

    evaluation, _images = scoring.evaluate(truth, lines)

    assert [entry["iou"] for entry in evaluation["classes"] if entry["truths"]] == [0.0] * 3
    assert evaluation["summary"]["miou"] == pytest.approx(evaluation["ground"]["iou"] / 4)


# ---- pages ---------------------------------------------------------------------------------------------------


def test_evaluation_page_shows_a_segmenter(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, task="segmentation")

    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()
    behind = as_alice.get(reverse("inference:evaluation-images", args=[made.pk]) + "?cell=0,3").content.decode()
    listed = as_alice.get(reverse("inference:evaluation-list")).content.decode()

    assert f'<span class="label">mIoU</span><span class="big">{made.metrics["miou"]:.3f}</span>' in page
    assert "segmentation_evaluation.js" in page
    assert 'id="threshold"' not in page
    assert "<td>green</td>" in page
    assert gallery.count('class="error-map"') == 5
    assert "Images where red was predicted as background." in behind
    value = f"{made.metrics['miou']:.3f}"
    assert f'{value}<div class="small muted">mIoU</div>' in listed


def test_service_page_draws_masks_with_a_slider_for_their_cover(alice, as_alice, tmp_path):
    model = factory.model_version(alice, tmp_path, task="segmentation")
    service = endpoints.create(user=alice, name="demo", model_version=model)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/segmentation.js" in page
    assert 'id="cover"' in page
    assert "pycocotools.mask.decode" in page
