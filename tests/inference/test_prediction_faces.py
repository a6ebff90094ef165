"""Pages, API and downloads of predictions, and the versions made of them."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from rest_framework.test import APIClient

from aiplatform import env
from datasets.models import Dataset
from datasets.services import imports
from inference.batch import presentation
from inference.batch.models import PredictedData, Prediction
from inference.registry import lineage
from tests.factories import models as factory
from tests.inference import judged, predicted

pytestmark = pytest.mark.django_db


def finished(row):
    """An import after its worker."""
    imports.run(row.pk)
    row.refresh_from_db()
    return row


def imported(alice, tmp_path):
    """A version that came in by the way of all: squares without annotations, in two splits."""
    made = judged.versions.detection(tmp_path / "made", images=8)
    root = tmp_path / "shelf"
    for number, file in enumerate(sorted((made / "images").iterdir())):
        target = root / ("train" if number < 5 else "val") / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    dataset = Dataset.objects.create(owner=alice, name="shelf", intro="")
    env_before, env.SERVER_PATHS = env.SERVER_PATHS, [str(tmp_path)]
    try:
        row = finished(imports.start(dataset=dataset, by=alice, server_path=f"{root}/", agreed=True, wanted="images"))
    finally:
        env.SERVER_PATHS = env_before
    assert row.state == "done", row.error
    return row.version


@pytest.fixture
def model(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def data(alice, tmp_path):
    return imported(alice, tmp_path)


@pytest.fixture
def other(bob):
    client = APIClient()
    client.force_authenticate(bob)
    return client


def test_prediction_api(api, other, alice, model, data):
    sent = {"model_version": "cells:1", "version": data.pk, "split": "train", "score_threshold": 0.5}
    made = api.post("/api/v1/predictions/", sent, format="json")
    assert made.status_code == 201, made.content
    prediction = Prediction.objects.get()
    at = f"/api/v1/predictions/{prediction.pk}/"
    assert api.get(f"{at}download/").status_code == 404
    predicted.ran(prediction)

    row = api.get(at).json()
    assert (row["state"], row["total"], row["summary"]["done"], row["source"]) == ("succeeded", 5, 5, str(data))
    content = api.get(f"{at}answers/", {"begin": 3, "count": 1}).json()
    assert (content["answers"][0]["path"], content["next"]) == ("train/004.png", 4)
    assert all(prediction_["score"] >= 0.5 for prediction_ in content["answers"][0]["predictions"])
    assert api.get(f"{at}results/").json()["left_out"] == []
    csv = api.get(f"{at}download/", {"as": "csv"})
    assert b"".join(csv.streaming_content).decode().startswith("\ufeffpath,width,height,class_id,class,score")
    assert api.get(f"{at}download/", {"as": "pdf"}).status_code == 400
    assert api.get("/api/v1/predictions/", {"search": "shelf"}).json()["results"][0]["id"] == prediction.pk
    for path in ("", "answers/", "results/", "download/"):
        assert other.get(f"{at}{path}").status_code == 404
    for path in ("stop/", "version/"):
        assert other.post(f"{at}{path}").status_code == 404
    listed = {
        "model_version": "cells:1",
        "version": data.pk,
        "list_file": SimpleUploadedFile("a.csv", b"path\ntrain/003.png\n"),
    }
    assert api.post("/api/v1/predictions/", listed, format="multipart").json()["total"] == 1
    assert api.post(f"/api/v1/predictions/{prediction.pk + 1}/stop/").status_code == 202


def test_all_that_is_wrong_is_said_at_once(api, alice, data, tmp_path):
    bare = factory.model_version(alice, tmp_path, name="bare", task="tensor")
    sent = {
        "model_version": bare.pk,
        "version": data.pk,
        "split": "night",
        "score_threshold": 7,
        "batch": 0,
        "name": "?",
    }

    refused = api.post("/api/v1/predictions/", sent, format="json")

    assert refused.status_code == 409
    assert set(refused.json()["errors"]) == {"model_version", "split", "score_threshold", "batch", "name"}
    assert not Prediction.objects.exists()


def test_prediction_pages(client, alice, bob, anna, model, data, monkeypatch, django_assert_max_num_queries):
    client.force_login(alice)
    page_form = client.get(reverse("inference:prediction-new"), {"model_version": model.pk, "version": data.pk})
    assert page_form.status_code == 200
    sent = {"model_version": model.pk, "version": data.pk, "cpus": "1", "gpus_per_node": "0", "nodes": "1"}
    assert client.post(reverse("inference:prediction-new"), sent | {"batch": "900"}).status_code == 422
    wrong = {"listed": SimpleUploadedFile("a.txt", b"../x")}
    assert "is not" in client.post(reverse("inference:prediction-new"), sent | wrong).content.decode()
    assert client.post(reverse("inference:prediction-fit"), sent).status_code == 200
    made = client.post(reverse("inference:prediction-new"), sent)
    prediction = Prediction.objects.get()
    page = reverse("inference:prediction-detail", args=[prediction.pk])
    assert made.headers["Location"] == page
    assert b"No images processed yet." in client.get(page).content
    predicted.ran(prediction)

    shown = client.get(page).content.decode()
    assert shown.count("<figure") == 8
    assert "box-answer" in shown
    assert reverse("inference:prediction-download", args=[prediction.pk, "coco"]) in shown
    image = client.get(reverse("inference:prediction-image", args=[prediction.pk, 2]))
    assert (image.status_code, image["Content-Type"]) == (200, "image/png")
    assert b"".join(image.streaming_content).startswith(b"\x89PNG")
    assert client.get(reverse("inference:prediction-image", args=[prediction.pk, 99])).status_code == 404
    further = client.get(reverse("inference:prediction-images", args=[prediction.pk]), {"begin": "5"})
    assert further.content.decode().count("<figure") == 3
    monkeypatch.setattr(presentation, "PER_PAGE", 3)
    assert "/images/?begin=3" in client.get(page).content.decode()
    assert client.get(reverse("inference:prediction-download", args=[prediction.pk, "pdf"])).status_code == 404
    assert prediction.job.name in client.get(reverse("inference:prediction-list")).content.decode()
    for _ in range(3):
        predicted.submitted(alice, model, data)
    with django_assert_max_num_queries(25):
        client.get(reverse("inference:prediction-list"))
    client.post(reverse("inference:prediction-stop", args=[prediction.pk]))
    client.force_login(bob)
    assert client.get(page).status_code == 404
    for name, args in (("prediction-images", []), ("prediction-image", [2]), ("prediction-download", ["csv"])):
        assert client.get(reverse(f"inference:{name}", args=[prediction.pk, *args])).status_code == 404
    for name in ("prediction-stop", "prediction-version"):
        assert client.post(reverse(f"inference:{name}", args=[prediction.pk])).status_code == 404
    client.force_login(anna)
    assert client.get(page).status_code in (403, 404)


def test_answers_become_the_next_version_as_a_first_draft(client, api, alice, model, data):
    prediction = predicted.submitted(alice, model, data, split="train")
    predicted.ran(prediction)

    made = api.post(f"/api/v1/predictions/{prediction.pk}/version/", {"min_score": 0.5}, format="json")
    assert made.status_code == 202, made.content
    row = finished(PredictedData.objects.get().intake)

    assert row.state == "done", row.error
    version = row.version
    assert (version.dataset, version.number, version.parent, version.task) == (data.dataset, 2, data, "detection")
    assert version.changed == f"Draft by model cells v1, batch prediction {prediction.job.name}"
    assert [item["name"] for item in version.classes] == ["red", "green", "blue"]
    coco = json.loads((version.path / "annotations.json").read_text())
    predictions = [
        item for line in predicted.answers(prediction) for item in line["predictions"] if item["score"] >= 0.5
    ]
    assert [item["category_id"] for item in coco["annotations"]] == [item["class_id"] for item in predictions]
    assert coco["annotations"][0]["attributes"]["score"] == predictions[0]["score"]
    assert coco["info"]["predicted_by"] == "cells v1"
    assert [image["split"] for image in coco["images"]] == ["train"] * len(coco["images"])
    assert version.image_count == data.image_count > len(coco["images"])
    graph = lineage.build_graph(model, alice)
    assert {(node.kind, node.label) for node in graph.nodes.values()} >= {
        ("prediction", prediction.job.name), ("dataset", str(version)),
    }  # fmt: skip
    assert graph.hidden == 0
    client.force_login(alice)
    assert str(version) in client.get(reverse("inference:prediction-detail", args=[prediction.pk])).content.decode()


def test_answers_of_a_folder_become_a_dataset_of_their_own(client, alice, model, tmp_path, monkeypatch):
    made = judged.versions.detection(tmp_path / "made", images=4)
    monkeypatch.setattr(env, "SERVER_PATHS", [str(made)])
    (made / "images" / "broken.png").write_bytes(b"no picture")
    prediction = predicted.submitted(alice, model, server_path=str(made / "images"))
    predicted.ran(prediction)
    client.force_login(alice)
    page = reverse("inference:prediction-detail", args=[prediction.pk])
    picture = client.get(reverse("inference:prediction-image", args=[prediction.pk, 1]))
    assert b"".join(picture.streaming_content).startswith(b"\x89PNG")

    refused = client.post(reverse("inference:prediction-version", args=[prediction.pk]), {"min_score": "0"})
    done = client.post(reverse("inference:prediction-version", args=[prediction.pk]), {"name": "drafted"})
    row = finished(PredictedData.objects.get().intake)

    assert refused.status_code == 422
    assert done.headers["Location"] == reverse("datasets:detail", args=[row.dataset_id])
    assert row.state == "done", (row.error, row.report)
    assert (row.version.image_count, row.version.task) == (4, "detection")
    assert "Draft by model cells v1" in row.version.changed
    assert row.version.annotation_count == prediction.summary["predictions"]
    assert "broken.png" in client.get(page).content.decode()
