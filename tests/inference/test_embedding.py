"""Embeddings at work: neighbours, classes they name, figures from stored vectors."""

from __future__ import annotations

import base64
import json
import time

import numpy as np
import pytest
from django.urls import reverse

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.kit.samples import ground_truth
from inference.kit.task_kinds.embedding import answer, scoring
from inference.serving import endpoints
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny, versions
from tests.inference.running import a_run


async def answer_of(folder, picture: bytes, **requested: str) -> dict:
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        options = Requested.from_query(requested)
        return await service.predict(picture, options, Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()


# ---- answers -------------------------------------------------------------------------------------------------


async def test_embedder_answers_the_class_its_neighbours_name_and_the_nearest_first(tmp_path):
    [prediction] = (await answer_of(tiny.embedder(tmp_path), pictures.plain("green")))["predictions"]

    assert (prediction["name"], prediction["class_id"]) == ("green", 2)
    assert 0.8 < prediction["score"] < 1
    assert len(prediction["neighbours"]) == 5
    assert [near["image"] for near in prediction["neighbours"]][:2] == ["green-0", "green-1"]
    assert [near["name"] for near in prediction["neighbours"]][:4] == ["green"] * 4
    similarities = [near["similarity"] for near in prediction["neighbours"]]
    assert similarities == sorted(similarities, reverse=True)
    assert prediction["vector"] == pytest.approx([0, 1, 0], abs=1e-5)


async def test_embedder_answers_as_many_neighbours_as_asked_and_there_are(tmp_path):
    folder, picture = tiny.embedder(tmp_path), pictures.plain("red")

    counts = [
        len((await answer_of(folder, picture, neighbours=count))["predictions"][0]["neighbours"])
        for count in ("0", "1", "12", "100")
    ]

    assert counts == [0, 1, 12, 12]
    with pytest.raises(BadRequest, match="neighbours must be a number from 0 to 1000"):
        Requested.from_query({"neighbours": "-1"})


async def test_embedder_that_still_knows_paths_answers_none_of_them(tmp_path):
    folder = tiny.embedder(tmp_path)
    description = json.loads((folder / "model.json").read_text())
    description["gallery"]["paths"] = [f"ward 3/{image}.png" for image in description["gallery"].pop("images")]
    (folder / "model.json").write_text(json.dumps(description))

    [prediction] = (await answer_of(folder, pictures.plain("green")))["predictions"]

    assert [near["image"] for near in prediction["neighbours"]][:2] == ["5", "6"]
    assert "ward" not in json.dumps(prediction)


@pytest.mark.parametrize(
    ("gallery", "message"),
    [
        (None, "does not describe the 12 known images"),
        ({"classes": [0], "images": ["a"]}, "does not describe the 12 known images"),
        ({"classes": [7] * 12, "images": ["a"] * 12}, "classes that the model does not have"),
    ],
)
def test_gallery_that_does_not_fit_the_model_is_named(tmp_path, gallery, message):
    folder = tiny.embedder(tmp_path)
    description = json.loads((folder / "model.json").read_text())
    spec = model_json.parse({**description, "gallery": gallery})

    with pytest.raises(ValueError, match=message):
        answer.gallery(spec, 12)


def test_neighbours_without_likeness_name_a_class_of_no_weight():
    result = answer.named(np.array([-0.5, -0.1], np.float32), np.array([1, 0]), count=5)

    assert (result.share, result.nearest.tolist()) == (0.0, [1, 0])


# ---- figures -------------------------------------------------------------------------------------------------


@pytest.fixture
def embedding(tmp_path):
    return a_run(tmp_path / "run", tiny.embedder(tmp_path / "model"), versions.classification(tmp_path / "data"))


def test_evaluator_figures_of_an_embedder_are_those_counted_anew(embedding):
    evaluation = evaluate(embedding)

    rows = [json.loads(line) for line in (embedding.outputs / "vectors.jsonl").read_text().splitlines()]
    vectors = np.array([row["vector"] for row in rows])
    labels = {sample.path: sample.label for sample in ground_truth.read(embedding.dataset, "test").samples}
    classes = np.array([labels[row["path"]] for row in rows])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    order = np.argsort(-cosines, axis=1, kind="stable")
    right = classes[order] == classes[:, None]
    assert evaluation["summary"]["recall_5"] == pytest.approx(right[:, :5].any(1).mean())
    assert evaluation["summary"]["knn_accuracy"] == pytest.approx(10 / 12)  # every sixth label is wrong
    assert sum(entry["truths"] for entry in evaluation["classes"]) == 12
    assert np.array(evaluation["confusion"]["matrix"]).sum() == 12


def judged_lines(vectors: list[list[float]], labels: list[int], predicted: list[int | None]) -> tuple:
    samples = [ground_truth.Sample(n, f"{n}.png", 8, 8, label) for n, label in enumerate(labels, 1)]
    truth = ground_truth.Truth(
        None, {}, "classification", tuple(ground_truth.ModelClass(n, str(n)) for n in (1, 2)), samples, None
    )
    lines = [
        {"path": sample.path, "id": sample.id, "class_id": answered, "score": 1.0,
         "vector": base64.b64encode(np.array(vector, "<f4").tobytes()).decode()}
        for sample, vector, answered in zip(samples, vectors, predicted, strict=True)
    ]  # fmt: skip
    return truth, lines


def test_evaluator_finds_the_nearest_of_each_image_and_its_mean_precision():
    vectors = [[1, 0], [0.99, 0.1], [0.9, 0.3], [0, 1], [0.2, 1]]
    truth, lines = judged_lines(vectors, [1, 2, 1, 2, 2], [1, 1, 1, 2, 2])

    evaluation, images = scoring.evaluate(truth, lines)

    assert evaluation["summary"] == {
        "recall_1": pytest.approx(2 / 5),
        "recall_5": 1.0,
        "map_r": pytest.approx((1 / 2 + 1 / 2) / 5),
        "knn_accuracy": pytest.approx(4 / 5),
    }
    assert evaluation["confusion"] == {"labels": ["1", "2"], "background": False, "matrix": [[2, 0], [1, 2]]}
    by_path = {image["path"]: image for image in images}
    assert (by_path["4.png"]["nearest"], by_path["4.png"]["nearest_right"]) == ("5.png", True)
    assert images[0]["path"] == "2.png"
    assert by_path["2.png"]["cells"] == ["1,0"]


def test_evaluator_counts_what_nobody_named_and_images_alone_in_their_class():
    truth, lines = judged_lines([[1, 0], [0, 1]], [1, 2], [None, 2])

    evaluation, _images = scoring.evaluate(truth, lines)

    assert evaluation["summary"] == {"recall_1": None, "recall_5": None, "map_r": None, "knn_accuracy": 0.5}
    assert evaluation["confusion"]["matrix"] == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert evaluation["confusion"]["labels"] == ["1", "2", ""]


# ---- trainings and pages -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_training_of_an_embedder_is_submitted_for_classes_and_refused_for_boxes(alice, api, tmp_path):
    labels = judged.dataset_version(alice, tmp_path / "labels", task="classification")
    boxes = judged.dataset_version(alice, tmp_path / "boxes")
    address = "/api/v1/training/jobs/"

    taken = api.post(address, {"name": "like", "version": labels.pk, "preset": "embed"}, format="json")
    refused = api.post(address, {"name": "like2", "version": boxes.pk, "preset": "embed"}, format="json")

    assert taken.status_code == 201
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_task")


def test_evaluation_page_shows_an_embedder(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, task="embedding")

    page = as_alice.get(reverse("inference:evaluation-detail", args=[made.pk])).content.decode()
    gallery = as_alice.get(reverse("inference:evaluation-images", args=[made.pk])).content.decode()
    listed = as_alice.get(reverse("inference:evaluation-list")).content.decode()

    assert f'<span class="label">Recall@1</span><span class="big">{made.metrics["recall_1"]:.3f}</span>' in page
    assert "embedding_evaluation.js" in page
    assert 'id="like-classes"' in page
    assert gallery.count("nearest:") == 12
    value = f"{made.metrics['recall_1']:.3f}"
    assert f'{value}<div class="small muted">Recall@1</div>' in listed


def test_service_page_shows_neighbours(alice, as_alice, tmp_path):
    model = factory.model_version(alice, tmp_path, task="embedding")
    service = endpoints.create(user=alice, name="demo", model_version=model)

    page = as_alice.get(reverse("inference:service-detail", args=[service.pk])).content.decode()

    assert "inference/task_kinds/embedding.js" in page
    assert "neighbours=20" in page
