"""Programs of torch beside versions: who may ask for one, what is refused, and what is handed out."""

from __future__ import annotations

import json

import pytest

from inference.registry.kind import ModelTaskKind
from inference.registry.models import ModelVersion
from inference.registry.torch_export import exports
from tests.factories import models as factory
from tests.inference.running import set_state
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(alice, tmp_path):
    """A version as a training of the preset `classify` leaves it."""
    made = factory.model_version(alice, tmp_path, task="classification")
    files = [*made.files, {"name": "model.safetensors", "size": 1, "sha256": ""}]
    ModelVersion.objects.filter(pk=made.pk).update(
        source="training", preset="classify", architecture="lenet5", files=files
    )
    made.refresh_from_db()
    return made


def test_program_is_made_by_a_job_and_handed_out_as_bytes(api, client, alice, bob, version):
    route, page = f"/api/v1/model-versions/{version.pk}/torch/", f"/models/versions/{version.pk}/torch/"
    client.force_login(alice)
    assert [api.get(route).status_code, client.get(page).status_code] == [404, 404]
    response = api.post(route)
    again = api.post(route)
    task = version.measurements.get()
    run = RunDir.for_attempt(task.job_id, 1)
    set_state(task.job, "running")
    for folder in (run.code, run.outputs):
        folder.mkdir(parents=True, exist_ok=True)
    launch = ModelTaskKind().prepare(task.job, task.job.attempts.get(), run)
    (run.outputs / "model.pt2").write_bytes(b"a program")
    facts = {"largest": 2e-6, "pictures": 4, "batch": True, "torch": "2.13.0"}
    (run.outputs / "torch.json").write_text(json.dumps(facts))
    ModelTaskKind().ended(task.job, task.job.attempts.get())
    set_state(task.job, "succeeded")

    assert (response.status_code, response.json()["act"], again.status_code) == (202, "torch", 409)
    assert launch.argv[1:] == ["-m", "presets.torch_export"]
    assert (run.code / "presets" / "torch_export.py").is_file()
    for answer in (api.get(route), client.get(page)):
        assert b"".join(answer.streaming_content) == b"a program"
        assert 'cells_v1.pt2"' in answer["Content-Disposition"]
    shown = client.get(f"/models/{version.model_id}/").content.decode()
    assert "Download .pt2" in shown
    client.force_login(bob)
    assert client.get(page).status_code == 404
    assert client.post(f"{page}export/").status_code == 404


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "upload"}, "was not trained here"),
        ({"preset": "detect"}, "cannot be rebuilt"),
        ({"architecture": "own"}, "custom program of another user"),
        ({"files": []}, "has no weights or no ONNX file. Train it again."),
    ],
)
def test_version_whose_network_cannot_be_built_anew_is_refused_in_a_sentence(api, version, fields, message):
    ModelVersion.objects.filter(pk=version.pk).update(**fields)

    answer = api.post(f"/api/v1/model-versions/{version.pk}/torch/")

    assert answer.status_code == 409
    assert answer.json()["code"] == "cannot_export"
    assert message in answer.json()["detail"]
    assert not exports.can_export(ModelVersion.objects.get(pk=version.pk))
