"""Tagging at work: which classes are answered, figures of stored scores, the page of an evaluation."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from django.urls import reverse
from sklearn import metrics

from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.samples import counts, ground_truth
from inference.kit.task_kinds.tagging import scoring
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny, versions

PICTURE = pictures.with_boxes({(0, 0, 64, 64): "red", (64, 64, 128, 128): "blue", (120, 0, 128, 8): "green"})


async def tags_of(folder: Path, **requested: float) -> list[dict]:
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        answer = await service.predict(PICTURE, Requested(**requested), Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()
    return answer["predictions"]


async def test_tagger_names_all_classes_that_are_there_and_then_the_likeliest(tmp_path):
    tags = await tags_of(tiny.tagger(tmp_path))

    assert [(tag["name"], tag["present"]) for tag in tags] == [("red", True), ("blue", True), ("green", False)]
    assert {tag["threshold"] for tag in tags} == {0.5}
    assert tags[0]["score"] > 0.99 > 0.5 > tags[2]["score"]


async def test_tagger_leaves_out_none_that_is_there_however_few_are_asked_for(tmp_path):
    folder = tiny.tagger(tmp_path)

    few = await tags_of(folder, top_k=1)
    low = await tags_of(folder, top_k=1, score_threshold=0.05)

    assert [tag["name"] for tag in few] == ["red", "blue"]
    assert [tag["present"] for tag in low] == [True, True, True]


@pytest.mark.parametrize("seed", range(3))
def test_counts_precision_and_recall_are_those_of_scikit_learn(seed):
    draw = np.random.default_rng(seed)
    scores, there = draw.integers(0, 9, 50) / 8, draw.random(50) < 0.4

    values = counts.precision_recall(there, scores)

    precision, recall, _ = metrics.precision_recall_curve(there, scores)
    assert values["ap"] == pytest.approx(metrics.average_precision_score(there, scores))
    expected = [precision[:-1][recall[:-1] >= at - 1e-9].max() for at in counts.RECALLS]
    assert values["pr"] == pytest.approx(expected, abs=1e-4)
    assert counts.precision_recall(np.zeros(50, bool), scores) == {"ap": None, "pr": None}


def test_evaluator_figures_of_tags_are_those_of_scikit_learn(tmp_path):
    truth = ground_truth.read(versions.detection(tmp_path, images=24), "test")
    draw = np.random.default_rng(0)
    there = np.array([[c.id in {box.class_id for box in s.boxes} for c in truth.classes] for s in truth.samples])
    scores = (0.35 * there + 0.65 * draw.random(there.shape)).round(6)
    lines = [
        {"path": s.path, "id": s.id, "threshold": 0.5,
         "scores": {str(c.id): float(score) for c, score in zip(truth.classes, row, strict=True)}}
        for s, row in zip(truth.samples, scores, strict=True)
    ]  # fmt: skip

    evaluation, images = scoring.evaluate(truth, lines)

    predicted = scores >= 0.5
    assert evaluation["summary"]["map"] == pytest.approx(
        metrics.average_precision_score(there, scores, average="macro")
    )
    assert evaluation["summary"]["f1"] == pytest.approx(metrics.f1_score(there, predicted, average="macro"))
    assert evaluation["summary"]["exact"] == pytest.approx(metrics.accuracy_score(there, predicted))
    assert [entry["precision"] for entry in evaluation["classes"]] == pytest.approx(
        metrics.precision_score(there, predicted, average=None).tolist()
    )
    matrix = np.array(evaluation["confusion"]["matrix"])
    assert matrix.diagonal()[:3].tolist() == (there & predicted).sum(0).tolist()
    worst = {s.path: row for s, row in zip(truth.samples, np.abs(there - scores), strict=True)}[images[0]["path"]]
    assert worst.max() > 0.5
    assert {cell for image in images for cell in image["cells"]} == {
        f"{row},{column}" for row, column in np.argwhere(matrix).tolist()
    }


@pytest.mark.parametrize(
    ("there", "predicted", "expected"),
    [
        ("110", "110", [(0, 0), (1, 1)]),
        ("110", "100", [(0, 0), (1, 3)]),  # missed: taken for nothing
        ("100", "101", [(0, 0), (3, 2)]),  # where nothing was
        ("110", "001", [(0, 2), (1, 2)]),
        ("000", "000", []),
    ],
)
def test_confused_tags_stand_behind_each_other_or_behind_nothing(there, predicted, expected):
    as_flags = (np.array([letter == "1" for letter in word]) for word in (there, predicted))

    assert scoring.confused(*as_flags) == expected


def test_tagging_evaluation_runs_on_objects_and_is_shown(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, task="tagging")

    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()
    outputs = judged.RunDir.for_attempt(made.job_id, 1).outputs
    images = [json.loads(line) for line in (outputs / "images.jsonl").read_text().splitlines()]

    assert made.metrics["threshold"] == 0.5  # the model's own, not the best one for these images
    assert '<span class="label">Exact matches</span>' in page
    assert '<button class="sort" type="button">Images</button>' in page
    assert any(image["missed"] for image in images)
    assert "missing: " in gallery


def test_tagging_service_page_has_its_slider_and_script(alice, as_alice, tmp_path):
    model = factory.model_version(alice, tmp_path, name="tags", task="tagging")
    service = endpoints.create(user=alice, name="demo", model_version=model)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/tagging.js" in page
    assert 'id="score"' in page
    assert "tag[&quot;present&quot;]" in page
