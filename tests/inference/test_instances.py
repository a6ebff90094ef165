"""Instance segmentation at work: outlines of masks, answers in a picture's own pixels, COCO's AP of masks."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest
from django.urls import reverse
from pycocotools import mask as pycoco
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from inference.evaluation.average_precision import Ranking
from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.task_kinds.instances.outlines import area, outlines
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny, versions
from tests.inference.running import a_run

# ---- outlines ------------------------------------------------------------------------------------------------


def disc(size: int, radius: float) -> np.ndarray:
    """How far inside a disc around the middle each cell is."""
    y, x = np.mgrid[:size, :size] + 0.5
    return (radius - np.hypot(x - size / 2, y - size / 2)).astype(np.float32)


def test_outlines_go_around_a_disc_between_the_cells():
    [ring] = outlines(disc(40, 12.3))

    assert np.hypot(*(ring - 20).T) == pytest.approx(12.3, abs=0.05)
    assert area(ring) == pytest.approx(math.pi * 12.3**2, rel=0.01)


def test_outlines_of_a_ring_are_two_that_run_opposite_ways():
    grid = np.minimum(disc(40, 15), -disc(40, 6))

    outer, inner = outlines(grid)

    assert area(outer) == pytest.approx(math.pi * 15**2, rel=0.02)
    assert area(inner) == pytest.approx(-math.pi * 6**2, rel=0.03)


def test_outlines_close_at_the_edges_of_the_grid():
    [ring] = outlines(np.full((6, 9), 5, np.float32))

    assert (ring.min(0), ring.max(0)) == (pytest.approx([0, 0], abs=0.35), pytest.approx([9, 6], abs=0.35))


def test_outlines_keep_parts_that_touch_at_a_corner_apart():
    grid = np.full((8, 8), -1, np.float32)
    grid[1:4, 1:4] = grid[4:7, 4:7] = 1

    assert len(outlines(grid)) == 2


def test_outlines_of_nothing_are_none():
    assert outlines(np.full((5, 5), -1, np.float32)) == []
    assert outlines(np.zeros((5, 5), np.float32)) == []


@pytest.mark.parametrize("seed", range(4))
def test_outlines_cover_what_is_above_nought(seed):
    rng = np.random.default_rng(seed)
    grid = np.kron(rng.normal(size=(6, 7)), np.ones((9, 9))).astype(np.float32)

    covered = sum(area(ring) for ring in outlines(grid))

    assert covered == pytest.approx((grid > 0).sum(), rel=0.05)


# ---- answers -------------------------------------------------------------------------------------------------


async def answer_of(folder, picture: bytes, **requested: float) -> dict:
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        return await service.predict(picture, Requested(**requested), Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()


async def test_instances_are_answered_with_box_and_outline_in_the_pixels_of_the_picture(tmp_path):
    picture = pictures.with_boxes({(16, 32, 32, 48): "red", (96, 32, 108, 48): "green"})  # cells of 16 pixels

    answer = await answer_of(tiny.instancer(tmp_path), picture, score_threshold=0.5)

    red, green = answer["predictions"]
    assert (red["name"], red["box"], green["box"]) == ("red", [16, 32, 32, 48], [96, 32, 112, 48])
    [ring] = green["polygon"]
    x, y = ring[::2], ring[1::2]
    assert [min(x), min(y)] == pytest.approx([96, 32], abs=1)
    assert [max(x), max(y)] == pytest.approx([108, 48], abs=2)  # of a box 16 wide the mask covers what is green
    assert red["score"] > green["score"] > 0.5


async def test_instances_below_the_asked_score_are_left_out(tmp_path):
    picture = pictures.with_boxes({(16, 32, 32, 48): "red", (96, 32, 108, 48): "green"})

    answer = await answer_of(tiny.instancer(tmp_path), picture, score_threshold=0.9)

    assert [prediction["name"] for prediction in answer["predictions"]] == ["red"]


# ---- figures -------------------------------------------------------------------------------------------------


@pytest.fixture
def segmenting(tmp_path):
    return a_run(tmp_path / "run", tiny.instancer(tmp_path / "model"), versions.detection(tmp_path / "data"))


def test_evaluator_figures_of_instances_are_those_of_pycocotools_from_its_file(segmenting, tmp_path):
    """The boxes of the truth count as the ellipses in them, drawn here by another program."""
    evaluation = evaluate(segmenting)

    coco = json.loads((tmp_path / "data" / "annotations.json").read_text())
    ids = {image["id"] for image in coco["images"] if image["split"] == "test"}
    coco["images"] = [image for image in coco["images"] if image["id"] in ids]
    coco["annotations"] = [annotation for annotation in coco["annotations"] if annotation["image_id"] in ids]
    for annotation in coco["annotations"]:
        x, y, w, h = annotation["bbox"]
        turns = np.arange(48) * 2 * np.pi / 48
        ring = np.stack([x + w / 2 * (1 + np.cos(turns)), y + h / 2 * (1 + np.sin(turns))], 1).ravel().tolist()
        annotation["segmentation"] = pycoco.merge(pycoco.frPyObjects([ring], 128, 128))
        annotation["area"] = float(pycoco.area(annotation["segmentation"]))
    truth = COCO()
    truth.dataset = coco
    truth.createIndex()
    judge = COCOeval(truth, truth.loadRes(json.loads((segmenting.outputs / "predictions.json").read_text())), "segm")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()

    assert 0 < evaluation["summary"]["ap50"] < 1
    assert evaluation["summary"]["map"] == pytest.approx(judge.stats[0], abs=1e-9)
    assert evaluation["summary"]["ap50"] == pytest.approx(judge.stats[1], abs=1e-9)
    assert evaluation["summary"]["box_ap50"] != evaluation["summary"]["ap50"]
    own = [annotation["ap50"] for annotation in evaluation["classes"] if annotation["ap50"] is not None]
    assert np.mean(own) == pytest.approx(judge.stats[1], abs=1e-9)


def test_entries_of_images_hold_what_average_precisions_of_masks_are_made_of(segmenting):
    evaluation = evaluate(segmenting)

    images = [json.loads(line) for line in (segmenting.outputs / "images.jsonl").read_text().splitlines()]
    (levels,) = Ranking(images).precisions(np.ones((1, len(images))))
    assert levels.mean() == pytest.approx(evaluation["summary"]["map"], abs=1e-6)
    assert levels[0] == pytest.approx(evaluation["summary"]["ap50"], abs=1e-6)


def test_evaluator_shows_the_images_whose_masks_overlap_least_first(segmenting):
    evaluate(segmenting)

    images = [json.loads(line) for line in (segmenting.outputs / "images.jsonl").read_text().splitlines()]
    overlaps = [image["mask_iou"] for image in images]
    assert overlaps == sorted(overlaps)
    assert 0 < overlaps[-1] < 1
    assert all(len(image["outlines"]) == len(image["answers"]) for image in images)
    assert all(len(image["truth_outlines"]) == len(image["truth"]) for image in images)


# ---- pages ---------------------------------------------------------------------------------------------------


def test_evaluation_page_of_instances_shows_outlines_and_figures(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, task="instances")

    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()

    assert f'<span class="label">Mask AP50</span><span class="big">{made.metrics["ap50"]:.3f}</span>' in page
    assert "Box AP50" in page
    assert 'class="box-answer" data-score="' in gallery
    assert ' d="M' in gallery


def test_service_page_of_instances_offers_a_threshold_and_its_own_script(alice, as_alice, tmp_path):
    version = factory.model_version(alice, tmp_path, name="shapes", task="instances")
    service = endpoints.create(user=alice, name="demo", model_version=version)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/instances.js" in page
    assert 'id="score"' in page
    assert "[&quot;polygon&quot;])" in page
