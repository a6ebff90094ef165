import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from datasets.models import Upload
from inference.evaluation.models import Evaluation
from inference.registry.models import Model
from inference.serving import endpoints
from inference.serving.models import Service
from tests.factories import models as factory
from tests.inference import judged, tiny
from tests.inference.running import set_state

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def as_person(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


def test_model_api_lists_models_with_their_newest_version(api, version):
    row = api.get("/api/v1/models/", {"search": "cel"}).json()["results"][0]

    assert (row["name"], row["task"], row["latest_version"], row["latest_version_id"]) == (
        "cells", "detection", 1, version.pk
    )  # fmt: skip
    assert api.get("/api/v1/models/", {"search": "zzz"}).json()["results"] == []
    versions = api.get(f"/api/v1/models/{version.model_id}/versions/").json()["results"]
    assert [v["number"] for v in versions] == [1]
    assert api.get(f"/api/v1/model-versions/{version.pk}/").json()["sha256"] == version.sha256


def test_model_api_takes_a_file_once_per_key(api, tmp_path):
    archive = factory.zipped(tiny.detector(tmp_path / "m"), tmp_path / "m.zip").read_bytes()

    def send():
        sent = {"name": "cells", "file": SimpleUploadedFile("m.zip", archive)}
        return api.post("/api/v1/models/", sent, format="multipart", headers={"Idempotency-Key": "key-12345"})

    first, again = send(), send()

    assert first.status_code == 201
    assert again.json() == first.json()
    assert Model.objects.count() == 1


def test_model_api_takes_a_finished_upload(api, alice, bob, tmp_path, settings):
    archive = factory.zipped(tiny.detector(tmp_path / "m"), tmp_path / "m.zip").read_bytes()
    upload = Upload.objects.create(id="a" * 32, owner=alice, filename="m.zip", length=len(archive), state="done")
    upload.file.parent.mkdir(parents=True, exist_ok=True)
    upload.file.write_bytes(archive)

    foreign = as_person(bob).post("/api/v1/models/", {"name": "cells", "upload": upload.pk}, format="json")
    own = api.post("/api/v1/models/", {"name": "cells", "upload": upload.pk}, format="json")

    assert foreign.status_code == 400
    assert own.status_code == 201, own.json()


def test_model_api_refuses_a_pickle_with_its_code(api):
    sent = {"name": "cells", "file": SimpleUploadedFile("m.pkl", b"\x80\x04.")}

    answer = api.post("/api/v1/models/", sent, format="multipart")

    assert (answer.status_code, answer.json()["code"]) == (400, "model_refused")


def test_inference_api_hides_private_things_from_strangers(bob, version, alice, tmp_path):
    evaluation = judged.evaluation(alice, tmp_path)
    service = endpoints.create(user=alice, name="demo", model_version=version)
    client = as_person(bob)
    missing = client.get("/api/v1/models/999999/").json()

    for path in (
        f"models/{version.model_id}/",
        f"models/{version.model_id}/versions/",
        f"model-versions/{version.pk}/",
        f"model-versions/{version.pk}/download/",
        f"evaluations/{evaluation.pk}/",
        f"evaluations/{evaluation.pk}/results/",
        f"evaluations/{evaluation.pk}/images/",
        f"services/{service.pk}/",
    ):
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 404, path
        assert answer.json()["detail"] == missing["detail"], path
    for noun in ("models", "evaluations", "services"):
        assert client.get(f"/api/v1/{noun}/").json()["results"] == []
    assert client.delete(f"/api/v1/services/{service.pk}/").status_code == 404
    assert client.post(f"/api/v1/services/{service.pk}/stop/").status_code == 404


def test_model_api_lets_others_read_but_not_change_public_things(alice, bob, tmp_path):
    version = factory.model_version(alice, tmp_path, visibility="public")
    service = endpoints.create(user=alice, name="demo", model_version=version, visibility="public")
    client = as_person(bob)

    assert client.get(f"/api/v1/models/{version.model_id}/").status_code == 200
    assert client.get(f"/api/v1/services/{service.pk}/").status_code == 200
    assert client.delete(f"/api/v1/models/{version.model_id}/").status_code == 403
    assert client.patch(f"/api/v1/models/{version.model_id}/", {"description": "x"}).status_code == 403
    assert client.delete(f"/api/v1/model-versions/{version.pk}/").status_code == 403
    assert client.post(f"/api/v1/services/{service.pk}/stop/").status_code == 403


def test_inference_api_is_closed_to_annotators(anna):
    client = as_person(anna)

    for noun in ("models", "evaluations", "services"):
        assert client.get(f"/api/v1/{noun}/").status_code == 403


def test_evaluation_api_goes_from_request_to_results(api, alice, version, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    sent = {"model_version": version.pk, "version": data.pk, "split": "test"}

    made = api.post("/api/v1/evaluations/", sent, format="json", headers={"Idempotency-Key": "key-12345"})
    again = api.post("/api/v1/evaluations/", sent, format="json", headers={"Idempotency-Key": "key-12345"})

    assert (made.status_code, again.json()["id"]) == (201, made.json()["id"])
    assert (made.json()["state"], made.json()["model"]) == ("queued", "cells v1")
    pk = made.json()["id"]
    assert api.get(f"/api/v1/evaluations/{pk}/results/").status_code == 404
    assert api.post(f"/api/v1/evaluations/{pk}/stop/").status_code == 202
    assert api.get("/api/v1/evaluations/", {"state": "waiting"}).status_code == 200


def test_evaluation_api_gives_results_and_images(api, alice, tmp_path):
    evaluation = judged.evaluation(alice, tmp_path)

    content = api.get(f"/api/v1/evaluations/{evaluation.pk}/results/").json()
    images = api.get(f"/api/v1/evaluations/{evaluation.pk}/images/").json()

    assert content["summary"]["ap50"] == pytest.approx(evaluation.metrics["ap50"])
    assert len(images["results"]) == 5
    assert images["next"] is None


def test_inference_api_refuses_references_to_foreign_things(bob, version, alice, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    client = as_person(bob)

    evaluation = client.post("/api/v1/evaluations/", {"model_version": version.pk, "version": data.pk}, format="json")
    service = client.post("/api/v1/services/", {"name": "x", "model_version": version.pk}, format="json")

    assert (evaluation.status_code, service.status_code) == (400, 400)
    assert not Evaluation.objects.exists()
    assert not Service.objects.exists()


def test_service_api_leads_a_service_through_its_life(api, version):
    made = api.post("/api/v1/services/", {"name": "demo", "model_version": version.pk}, format="json").json()
    assert (made["state"], made["model"], made["running_s"]) == ("queued", "cells v1", None)
    assert made["url"] == f"http://testserver/serve/{made['slug']}"

    assert api.post(f"/api/v1/services/{made['id']}/start/").json()["code"] == "already_running"
    assert api.post(f"/api/v1/services/{made['id']}/stop/").status_code == 202
    set_state(Service.objects.get().job, "stopped")
    assert api.post(f"/api/v1/services/{made['id']}/stop/").json()["code"] == "not_running"
    assert api.post(f"/api/v1/services/{made['id']}/start/").json()["state"] == "queued"
    assert api.patch(f"/api/v1/services/{made['id']}/", {"visibility": "public"}).json()["visibility"] == "public"
    assert [row["name"] for row in api.get("/api/v1/services/", {"search": "dem"}).json()["results"]] == ["demo"]
    assert api.delete(f"/api/v1/services/{made['id']}/").status_code == 204


def test_model_api_says_by_whom_a_model_is_used(api, alice, version):
    endpoints.create(user=alice, name="demo", model_version=version)

    answer = api.delete(f"/api/v1/models/{version.model_id}/")

    assert (answer.status_code, answer.json()["code"]) == (409, "still_in_use")
    assert "cells v1 is still used by endpoint demo of Alice." in answer.json()["detail"]
