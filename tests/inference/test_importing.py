"""Models from a home, from the outputs of any job, and by page and API."""

import json
import os

import pytest
import torch
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from accounts.access.permissions import Action
from aiplatform.lib.errors import DomainError, NotAllowed
from datasets.files import homes
from inference.registry import imports
from inference.registry.formats.declared import Declared
from inference.registry.models import Model, ModelTask, ModelVersion
from tests.conftest import signed_in
from tests.factories import models as factory
from tests.factories import work
from tests.inference import foreign, tiny
from tests.inference.foreign import LOGITS, PETS
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db
DECLARED = {"task": "classification", "labels": "cat\ndog", "pixels": "unit"}
SAID = Declared(task="classification", labels=PETS, pixels="unit")


@pytest.fixture
def home(alice):
    return homes.home_of(alice)


@pytest.fixture
def trained(alice, cluster):
    """A job of Alice's, not by a preset, that is over and left a model among other things."""
    job = work.job(alice, cluster, name="own-loop", state="succeeded")
    outputs = RunDir.for_attempt(job.pk, 1).outputs
    foreign.net(outputs / "export" / "net.onnx", {"answer": LOGITS})
    torch.save({"w": torch.zeros(2)}, outputs / "export" / "last.pth")
    (outputs / "log.txt").write_text("trained")
    return job


def refused(function, *args, **kwargs):
    with pytest.raises(DomainError) as caught:
        function(*args, **kwargs)
    return caught.value


def import_model(user, path, declared=SAID, name="net"):
    brought = imports.from_home(user, path)
    return imports.import_model(user=user, brought=brought, declared=declared, name=name)


def test_model_comes_from_a_file_in_the_home_with_what_describes_it(alice, home):
    tiny.classifier(home / "nets" / "a")
    (home / "nets" / "a" / "last.pth").write_bytes(b"never read")

    version = import_model(alice, "nets/a/model.onnx", Declared())

    assert (version.task, version.source, version.code_label) == ("classification", "files", "nets/a/model.onnx")
    assert {entry["name"] for entry in version.files} == {"model.onnx", "model.json"}
    assert (home / "nets" / "a" / "model.onnx").is_file()  # copied, not taken


def test_model_comes_from_a_folder_or_an_archive_in_the_home(alice, home, tmp_path):
    tiny.detector(home / "net")
    factory.zipped(home / "net", home / "net.zip")

    folder = import_model(alice, "/net/", Declared(), "folder")
    archive = import_model(alice, "net.zip", Declared(), "archive")

    assert (folder.task, archive.task) == ("detection", "detection")
    assert folder.sha256 == archive.sha256


@pytest.mark.parametrize("path", ["gone.onnx", "../alice/net.onnx", "/etc/passwd", "a\0b", "", "notes.md", "link.onnx"])
def test_paths_without_a_model_are_refused_where_they_are_typed(alice, home, tmp_path, path):
    (home / "notes.md").write_text("nothing")
    tiny.classifier(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere" / "model.onnx", home / "link.onnx")

    assert refused(import_model, alice, path).blamed == "path"
    assert not Model.objects.exists()


def test_links_in_a_folder_are_passed_over(alice, home):
    tiny.classifier(home / "net")
    os.symlink("/etc/passwd", home / "net" / "labels.txt")

    version = import_model(alice, "net", Declared())

    assert {entry["name"] for entry in version.files} == {"model.onnx", "model.json"}


def test_link_beside_a_file_is_passed_over_too(alice, home, tmp_path):
    tiny.classifier(tmp_path / "elsewhere")
    foreign.net(home / "net" / "net.onnx", {"answer": LOGITS})
    os.symlink(tmp_path / "elsewhere" / "model.json", home / "net" / "model.json")

    version = import_model(alice, "net/net.onnx")

    assert [entry["name"] for entry in version.classes] == ["cat", "dog"]


def test_folder_that_becomes_a_link_meanwhile_shows_nothing_of_where_it_leads(alice, bob, home, monkeypatch):
    (homes.home_of(bob) / "secret.pth").write_bytes(b"x")
    (homes.home_of(bob) / "other.pth").write_bytes(b"x")
    (home / "nets").mkdir()
    resolved = imports.files.resolve_beneath

    def swapped(root, path):
        result = resolved(root, path)
        (home / "nets").rmdir()
        os.symlink(homes.home_of(bob), home / "nets")
        return result

    monkeypatch.setattr(imports.files, "resolve_beneath", swapped)

    assert "secret" not in refused(import_model, alice, "nets").message


def test_deep_folders_and_closed_ones_are_no_way_to_stop_the_server(alice, home):
    folder = home / "deep"
    for _level in range(60):
        folder = folder / "d"
    folder.mkdir(parents=True)
    tiny.classifier(home / "deep" / "d" / "net")

    version = import_model(alice, "deep", Declared())

    assert version.task == "classification"


def test_outputs_of_any_finished_job_become_a_model(alice, trained):
    version = imports.import_model(
        user=alice, brought=imports.from_job(trained, "export", by=alice), declared=SAID, name="net"
    )

    assert (version.source, version.job, version.attempt) == (ModelVersion.Source.JOB, trained, 1)
    assert [entry["name"] for entry in version.classes] == ["cat", "dog"]


def test_outputs_are_taken_from_their_model_folder_where_no_path_is_said(alice, trained):
    tiny.classifier(RunDir.for_attempt(trained.pk, 1).outputs / "model")

    version = imports.import_model(user=alice, brought=imports.from_job(trained, by=alice), name="net")

    assert (version.task, version.code_label) == ("classification", "model")


def test_jobs_at_work_and_jobs_that_left_nothing_make_no_model(alice, cluster, trained):
    running = work.job(alice, cluster, state="running")
    empty = work.job(alice, cluster, state="succeeded")

    assert refused(imports.from_job, running, by=alice).blamed == "job"
    assert refused(imports.from_job, empty, by=alice).blamed == "job"
    assert refused(imports.from_job, trained, "log.txt", by=alice).blamed == "path"


def test_outputs_are_given_only_to_whom_jobs_are_shown(alice, trained):
    role = alice.roles.get()
    role.actions = [action for action in role.actions if action != Action.JOBS_VIEW]
    role.save()
    alice.forget_actions()

    with pytest.raises(NotAllowed):
        imports.from_job(trained, by=alice)


def test_several_archives_of_torch_must_be_told_apart(alice, home):
    (home / "nets").mkdir()
    for name in ("a.pth", "b.pth"):
        (home / "nets" / name).write_bytes(b"x")

    assert "a.pth" in refused(import_model, alice, "nets").message


def test_api_brings_models_in_from_home_and_job(api, alice, home, trained):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    by_path = api.post("/api/v1/models/", {"name": "a", "path": "net.onnx", **DECLARED}, format="json")
    sent = {"name": "b", "job": trained.pk, "path": "export", **DECLARED}
    by_job = api.post("/api/v1/models/", sent, format="json")
    more = api.post(f"/api/v1/models/{by_job.json()['model']}/versions/", {**DECLARED, "path": "net.onnx"})

    assert [answer.status_code for answer in (by_path, by_job, more)] == [201, 201, 201]
    assert (by_path.json()["source"], by_job.json()["source"], by_job.json()["job"]) == ("files", "job", trained.pk)
    assert more.json()["number"] == 2


def test_api_says_all_that_is_wrong_with_a_declaration(api, home):
    foreign.net(home / "net.onnx", {"answer": LOGITS}, size=None)

    answer = api.post("/api/v1/models/", {"name": "a/b", "path": "net.onnx", "task": "cooking"}, format="json")
    more = api.post("/api/v1/models/", {"name": "n", "path": "net.onnx", "task": "classification"}, format="json")

    assert set(answer.json()["errors"]) == {"name", "task"}
    assert set(more.json()["errors"]) == {"width", "height", "pixels", "labels"}


@pytest.mark.parametrize("ways", [{}, {"path": "a", "upload": 1}, {"job": 1, "upload": 1}])
def test_api_wants_one_place_that_a_model_comes_from(api, ways):
    assert api.post("/api/v1/models/", {"name": "n", **ways}, format="json").status_code == 400


def test_jobs_of_others_are_no_source(bob, trained):
    client = APIClient()
    client.force_authenticate(bob)
    answer = client.post("/api/v1/models/", {"name": "n", "job": trained.pk}, format="json")
    page = signed_in(bob).post("/models/new/", {"name": "n", "job": trained.pk, "visibility": "private"})

    assert answer.status_code == 400
    assert page.status_code == 422
    assert not Model.objects.exists()


def test_page_brings_in_a_described_file(as_alice, tmp_path):
    path = foreign.net(tmp_path / "net.onnx", {"answer": LOGITS})
    sent = {"name": "net", "visibility": "private", "file": SimpleUploadedFile("net.onnx", path.read_bytes())}

    answer = as_alice.post("/models/new/", sent | DECLARED)

    version = ModelVersion.objects.get()
    assert answer.url == f"/models/{version.model_id}/?version=1"
    assert version.source == "import"
    page = as_alice.get(answer.url).content.decode()
    assert "Measure speed" in page
    assert "Import" in page


def test_page_keeps_what_was_typed_and_says_what_is_wrong(as_alice, home):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    answer = as_alice.post(
        "/models/new/", {"name": "net", "visibility": "private", "path": "net.onnx", "task": "tagging"}
    )

    text = answer.content.decode()
    assert answer.status_code == 422
    assert "Choose the pixel normalization used for training." in text
    assert "Name the classes of the model (2)" in text
    assert 'value="net.onnx"' in text


def test_page_of_a_job_leads_to_a_model_of_its_outputs(as_alice, trained):
    page = as_alice.get(f"/jobs/{trained.pk}/?tab=files").content.decode()
    form = as_alice.get(f"/models/new/?job={trained.pk}").content.decode()

    assert f"/models/new/?job={trained.pk}" in page
    assert f'value="{trained.pk}"' in form


def test_page_of_a_job_without_weights_leads_to_no_model(as_alice, alice, cluster):
    job = work.job(alice, cluster, state="succeeded")
    outputs = RunDir.for_attempt(job.pk, 1).outputs
    outputs.mkdir(parents=True)
    (outputs / "a.txt").write_text("a")

    assert "/models/new/?job=" not in as_alice.get(f"/jobs/{job.pk}/?tab=files").content.decode()


def test_archive_of_torch_is_answered_by_the_job_that_reads_it(api, alice, home):
    torch.save({"w": torch.zeros(2)}, home / "net.pth")
    sent = {"name": "net", "path": "net.pth", **DECLARED}
    key = {"Idempotency-Key": "key-12345"}

    first = api.post("/api/v1/models/", sent, format="json", headers=key)
    again = api.post("/api/v1/models/", sent, format="json", headers=key)

    task = ModelTask.objects.get()
    assert (first.status_code, first.json()["id"], again.json()["id"]) == (202, task.pk, task.pk)
    assert api.get(f"/api/v1/model-tasks/{task.pk}/").json()["act"] == "convert"
    assert json.loads(json.dumps(task.job.spec))["declared"]["labels"] == ["cat", "dog"]
