"""Anomaly detection at work: answers with a heat map, figures from stored scores, the pages."""

from __future__ import annotations

import base64
import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
from django.urls import reverse
from PIL import Image
from sklearn import metrics

from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.samples import ground_truth
from inference.kit.task_kinds.anomaly import scoring
from inference.registry import registration as registry
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny, versions


async def answer_of(folder: Path, picture: bytes, **requested: float) -> dict:
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        answer = await service.predict(picture, Requested(**requested), Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()
    return answer["predictions"][0]


def spot(width: int, height: int) -> bytes:
    """A dark picture, white in its right quarter."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, width * 3 // 4 :] = 255
    return pictures.encoded(Image.fromarray(pixels))


@pytest.mark.parametrize("resize", ["stretch", "letterbox"])
async def test_anomaly_is_answered_with_score_verdict_and_a_map_of_the_picture(tmp_path, resize):
    answer = await answer_of(tiny.brightness(tmp_path, resize=resize), spot(128, 64))

    heat = np.asarray(Image.open(io.BytesIO(base64.b64decode(answer["heat"]))))
    assert (answer["anomalous"], answer["threshold"]) == (True, 0.5)
    assert answer["score"] == pytest.approx(1.0, abs=0.01)
    assert heat.shape == (48, 96)
    assert heat[:, 84:].min() > 180  # its edges run into the frame
    assert heat[8:-8, :60].max() < 20  # but for its edges, again


async def test_anomaly_verdict_follows_the_threshold_that_is_asked_for(tmp_path):
    folder = tiny.brightness(tmp_path)
    grey = pictures.encoded(Image.new("RGB", (64, 64), (102, 102, 102)))

    assert not (await answer_of(folder, grey))["anomalous"]
    assert (await answer_of(folder, grey, score_threshold=0.3))["anomalous"]


def test_evaluator_figures_of_anomalies_are_those_of_scikit_learn(tmp_path):
    truth = ground_truth.read(versions.classification(tmp_path), "test")
    draw = np.random.default_rng(0)
    good = truth.classes[0].id
    heat = base64.b64encode(scoring.png(np.zeros((4, 4), np.uint8))).decode()
    lines = [
        {"path": s.path, "id": s.id, "label": s.label, "good": good, "threshold": 0.5, "heat": heat,
         "score": float(draw.uniform(0.2, 0.6) + 0.2 * (s.label != good))}
        for s in truth.samples
    ]  # fmt: skip

    evaluation, images = scoring.evaluate(truth, lines)

    bad, scores = [line["label"] != good for line in lines], [line["score"] for line in lines]
    reported = [score >= 0.5 for score in scores]
    assert evaluation["summary"]["auroc"] == pytest.approx(metrics.roc_auc_score(bad, scores))
    assert evaluation["summary"]["average_precision"] == pytest.approx(metrics.average_precision_score(bad, scores))
    assert evaluation["summary"]["f1"] == pytest.approx(metrics.f1_score(bad, reported))
    assert evaluation["confusion"]["matrix"] == metrics.confusion_matrix(bad, reported).tolist()
    assert sum(entry["reported"] for entry in evaluation["classes"]) == sum(reported)
    assert {cell for image in images for cell in image["cells"]} == {
        f"{int(b)},{int(s)}" for b, s in zip(bad, reported, strict=True)
    }
    assert images[0]["badness"] >= images[-1]["badness"]


def test_evaluator_leaves_ranks_out_where_all_images_are_good(tmp_path):
    truth = ground_truth.read(versions.classification(tmp_path), "test")
    good = truth.classes[0].id
    heat = base64.b64encode(scoring.png(np.zeros((4, 4), np.uint8))).decode()
    lines = [
        {"path": s.path, "id": s.id, "label": good, "good": good, "threshold": 0.5, "heat": heat, "score": 0.1}
        for s in truth.samples
    ]

    evaluation, _images = scoring.evaluate(truth, lines)

    assert (evaluation["summary"]["auroc"], evaluation["summary"]["good_share"]) == (None, 1.0)


def test_heat_map_is_clear_where_usual_and_red_at_the_threshold():
    grey = scoring.png(np.array([[0, 60, 112, 128, 255]], np.uint8))

    shown = np.asarray(Image.open(io.BytesIO(scoring.coloured(grey, 0.5))))

    assert shown[0, :, 3].tolist() == [0, 0, 0, 190, 190]  # patches of good images come close to the threshold
    assert shown[0, 3, 1] == pytest.approx(30, abs=3)


@pytest.fixture
def model(alice, tmp_path):
    archive = factory.zipped(tiny.brightness(tmp_path / "brightness"), tmp_path / "brightness.zip")
    return registry.register_upload(user=alice, archive=archive, filename=archive.name, name="cloth")


def test_anomaly_evaluation_runs_and_is_shown(model, alice, as_alice, tmp_path):
    made = judged.judged(alice, model, judged.dataset_version(alice, tmp_path / "data", task="classification"))

    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()
    outputs = judged.RunDir.for_attempt(made.job_id, 1).outputs
    images = [json.loads(line) for line in (outputs / "images.jsonl").read_text().splitlines()]

    assert '<span class="label">AUROC</span>' in page
    assert 'id="anomaly-classes"' in page
    assert "anomaly_evaluation.js" in page
    assert f'href="data:image/png;base64,{images[0]["heat"]}"' in gallery
    assert "accepted as good" in gallery


def test_anomaly_service_page_has_its_sliders_and_script(model, alice, as_alice):
    service = endpoints.create(user=alice, name="demo", model_version=model)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/anomaly.js" in page
    assert 'id="score"' in page
    assert 'id="cover"' in page
