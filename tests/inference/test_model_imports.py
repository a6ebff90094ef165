"""Imports that take long are read by a job: the request is answered with a task, and the job makes the version."""

import json
import os
import subprocess

import pytest

from datasets.files import homes
from inference.registry import import_jobs, imports, inspections, task_panel
from inference.registry import registration as registry
from inference.registry.formats.declared import Declared
from inference.registry.kind import ModelTaskKind
from inference.registry.models import Model, ModelTask, ModelVersion
from inference.registry.run_code import Vanished
from tests.factories import models as factory
from tests.inference import foreign, tiny
from tests.inference.foreign import LOGITS, PETS, unopenable
from tests.inference.running import set_state
from workers.core.runs import RunDir
from workers.supervisor import sandbox, tiers
from workers.supervisor.ticket import Ticket

pytestmark = pytest.mark.django_db
needs_bubblewrap = pytest.mark.skipif(tiers.best_tier()[0] < sandbox.BUBBLEWRAP, reason="needs bubblewrap")
FIELDS = {"name": "net", "path": "net.onnx", "task": "classification", "labels": "\n".join(PETS), "pixels": "unit"}


@pytest.fixture
def home(alice):
    return homes.home_of(alice)


@pytest.fixture
def large(monkeypatch):
    """Every model counts as large."""
    monkeypatch.setattr(import_jobs, "LARGE_BYTES", 0)


def started(task: ModelTask, attempt: int = 1):
    """The run of the job and what starts its program."""
    set_state(task.job, "running")
    run = RunDir.for_attempt(task.job_id, attempt)
    for folder in (run.code, run.outputs):
        folder.mkdir(parents=True, exist_ok=True)
    return run, ModelTaskKind().prepare(task.job, task.job.attempts.get(), run)


def ran(task: ModelTask) -> str:
    """Run the job's program and let the kind keep what it left; gives its log."""
    run, launch = started(task)
    paths = {"AIP_PARAMS": str(run.params), "AIP_OUTPUT_DIR": str(run.outputs), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        launch.argv, cwd=run.code, env=launch.env | paths, capture_output=True, text=True, timeout=120, check=False
    )
    ModelTaskKind().ended(task.job, task.job.attempts.get())
    task.refresh_from_db()
    return done.stdout + done.stderr


def test_large_model_is_answered_with_a_task_and_becomes_a_version_by_its_job(api, alice, home, large):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    answer = api.post("/api/v1/models/", FIELDS, format="json")

    assert (answer.status_code, answer.json()["act"], answer.json()["made"]) == (202, "import", None)
    assert answer["Location"] == f"/api/v1/model-tasks/{answer.json()['id']}/"
    assert not Model.objects.exists()
    task = ModelTask.objects.get()
    output = ran(task)
    shown = api.get(answer["Location"]).json()
    version = ModelVersion.objects.get(pk=shown["made"])
    assert (version.task, version.source, version.code_label) == ("classification", "files", "net.onnx"), output
    assert [entry["name"] for entry in version.classes] == list(PETS)
    assert (version.path / "model.onnx").read_bytes() == (home / "net.onnx").read_bytes()
    assert not import_jobs.home(task.job).exists()
    assert task_panel.context(task.job, alice)["version"] == str(version)
    ModelTaskKind().ended(task.job, task.job.attempts.get())  # told twice
    assert ModelVersion.objects.count() == 1


@needs_bubblewrap
def test_job_reads_the_files_with_what_its_sandbox_shows_it(alice, home, large):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    declared = Declared(task="classification", labels=PETS, pixels="unit")
    brought = imports.from_home(alice, "net.onnx")
    task = imports.import_model(user=alice, brought=brought, declared=declared, name="net")
    run, launch = started(task)
    tier, bwrap = tiers.best_tier()
    ticket = Ticket(
        job=1, attempt=1, argv=launch.argv, cwd="/", tier=tier, bwrap=bwrap, own_network=launch.own_network,
        env=launch.env | {"AIP_PARAMS": str(run.params), "AIP_OUTPUT_DIR": str(run.outputs), "OMP_NUM_THREADS": "1"},
        read_only=[*map(str, [*tiers.python_folders(), *launch.read_only]), str(run.params)],
        read_write=[*map(str, launch.read_write), str(run.outputs)], uid=tiers.NOBODY if tier >= sandbox.OWN_UID else 0,
    )  # fmt: skip
    if ticket.uid:
        run.params.chmod(0o644)
        sandbox.chown_writable(ticket)
    handed = sandbox.handed(ticket)
    subprocess.run(
        sandbox.wrapped(ticket, handed), env=sandbox.environment(ticket), pass_fds=tuple(handed.values()), check=True
    )
    for opened in handed.values():
        os.close(opened)

    ModelTaskKind().ended(task.job, task.job.attempts.get())

    task.refresh_from_db()
    assert task.made is not None, str(task.message)
    assert {entry["name"] for entry in task.made.files} == {"model.onnx", "model.json"}


def test_large_archive_is_unpacked_by_the_job_also_by_its_second_attempt(alice, tmp_path, large):
    tiny.detector(tmp_path / "x")
    archive = factory.zipped(tmp_path / "x", tmp_path / "x.zip")
    brought = imports.from_upload(archive, "x.zip")
    task = imports.import_model(user=alice, brought=brought, name="net")
    archive.unlink()  # the request has ended
    folder = import_jobs.home(task.job) / inspections.FILES
    folder.mkdir()
    (folder / "half.onnx").write_bytes(b"of an attempt that was killed")

    output = ran(task)

    assert task.made is not None, output
    assert {entry["name"] for entry in task.made.files} == {"model.onnx", "model.json"}


def test_everything_that_is_wrong_is_kept_with_the_task_and_shown_by_page_and_api(api, as_alice, alice, home, large):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    fields = {name: value for name, value in FIELDS.items() if name != "pixels"}
    answer = api.post("/api/v1/models/", fields | {"labels": "one"}, format="json")
    task = ModelTask.objects.get(pk=answer.json()["id"])

    ran(task)

    refused = api.get(answer["Location"]).json()["refused"]
    assert "2 classes" in refused
    assert "Choose the pixel normalization used for training." in refused
    assert task_panel.context(task.job, alice)["is_import"]
    assert not Model.objects.exists()
    assert import_jobs.are_files_there(task.job)
    assert ModelTaskKind().check_restore(task.job) is None
    ran(task)  # again: model.json of the first time is not taken for the user's
    assert str(task.message) == refused


def test_page_leads_to_the_job_of_a_large_model_which_shows_why_nothing_came_of_it(as_alice, home, large):
    unopenable(home / "net.onnx")

    answer = as_alice.post("/models/new/", FIELDS | {"labels": "a\nb\nc", "visibility": "private"})

    task = ModelTask.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/jobs/{task.job_id}/")
    ran(task)
    page = as_alice.get(answer["Location"]).content.decode()
    assert "ONNX Runtime cannot open the model" in page
    assert "/models/new/?name=net" in page


def test_large_model_that_no_runtime_opens_is_refused_by_its_job(alice, home, large):
    unopenable(home / "net.onnx")
    task = imports.import_model(user=alice, brought=imports.from_home(alice, "net.onnx"), name="net")

    ran(task)

    assert str(task.message).startswith("ONNX Runtime cannot open the model")


def test_model_that_takes_longer_than_a_request_waits_goes_on_as_a_job(api, home, monkeypatch):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    def too_slow(*_args):
        raise inspections.TooSlow("slow")

    monkeypatch.setattr(inspections, "_run", too_slow)

    assert api.post("/api/v1/models/", FIELDS, format="json").status_code == 202


@pytest.mark.usefixtures("inspector_processes")
def test_model_whose_description_is_too_long_for_a_request_is_read_by_a_job(alice, home, monkeypatch):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    monkeypatch.setattr(import_jobs, "REQUEST_LIMITS", inspections.Bounds(20, 100))
    declared = Declared(task="classification", labels=PETS, pixels="unit")
    brought = imports.from_home(alice, "net.onnx")

    task = imports.import_model(user=alice, brought=brought, declared=declared, name="net")
    output = ran(task)

    assert task.made is not None, output


def test_folders_of_requests_that_were_killed_are_removed_after_a_day(settings, tmp_path):
    settings.DATA_ROOT = tmp_path
    killed, running, model = registry.workplace(), registry.workplace(), tmp_path / "models" / "1"
    for folder in (killed, model):
        folder.mkdir(exist_ok=True)
        os.utime(folder, (1, 1))

    registry.remove_stale_workplaces()

    assert (killed.exists(), running.exists(), model.exists()) == (False, True, True)


def test_wrong_name_and_declaration_are_refused_before_a_job_is_queued(api, home, large):
    foreign.net(home / "net.onnx", {"answer": LOGITS})

    answer = api.post("/api/v1/models/", FIELDS | {"name": "a/b"}, format="json")

    assert answer.status_code == 400
    assert not ModelTask.objects.exists()


@pytest.mark.parametrize("reply", [None, b"{", b"[]", json.dumps({"found": {"task": "root"}}).encode()])
def test_job_that_leaves_no_usable_reply_makes_nothing_and_says_so(alice, home, large, reply):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    task = imports.import_model(user=alice, brought=imports.from_home(alice, "net.onnx"), name="net")
    run, _launch = started(task)
    if reply is not None:
        (run.outputs / "inspection.json").write_bytes(reply)

    ModelTaskKind().ended(task.job, task.job.attempts.get())

    task.refresh_from_db()
    assert task.made is None
    assert "files" in str(task.message)
    assert not Model.objects.exists()


def test_job_cannot_hand_over_a_file_through_a_link(alice, home, tmp_path, large):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    task = imports.import_model(user=alice, brought=imports.from_home(alice, "net.onnx"), name="net")
    run, _launch = started(task)
    folder = import_jobs.home(task.job) / inspections.FILES
    tiny.detector(tmp_path / "secret")
    (folder / "sub").symlink_to(tmp_path / "secret")
    content = {
        "task": "tensor",
        "architecture": "",
        "preset": "",
        "classes": [],
        "metrics": {},
        "params": {},
        "facts": {},
    }
    reply = {"found": content | {"files": {"model.onnx": "sub/model.onnx"}}}
    (run.outputs / "inspection.json").write_text(json.dumps(reply))

    ModelTaskKind().ended(task.job, task.job.attempts.get())

    task.refresh_from_db()
    assert task.made is None
    assert not Model.objects.exists()


def test_job_whose_files_are_gone_does_not_start(alice, home, large):
    foreign.net(home / "net.onnx", {"answer": LOGITS})
    task = imports.import_model(user=alice, brought=imports.from_home(alice, "net.onnx"), name="net")
    (import_jobs.home(task.job) / inspections.FILES / "net.onnx").unlink()
    (import_jobs.home(task.job) / inspections.FILES).rmdir()

    with pytest.raises(Vanished):
        started(task)
    with pytest.raises(Vanished):
        ModelTaskKind().check_restore(task.job)
