"""Jobs about models: how fast one answers, what is in an archive of torch. The real programs, alone in their run."""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from rest_framework.test import APIClient
from torch import nn

from aiplatform.lib.errors import DomainError
from inference.kit.model_io.engine import Engine
from inference.registry import imports, model_jobs, task_panel
from inference.registry.formats.declared import Declared
from inference.registry.kind import ModelTaskKind
from inference.registry.models import Model, ModelTask, ModelVersion
from inference.registry.run_code import Vanished
from tests.factories import models as factory
from tests.inference.foreign import PETS
from tests.inference.running import set_state
from tests.long_form import first
from workers.core.kinds import Launch
from workers.core.runs import RunDir

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),  # archives of it will be about for long
]
SIDE = 32
SAID = Declared(task="classification", labels=PETS, pixels="unit", width=SIDE, height=SIDE)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2, 1)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


class Hostile:
    def __reduce__(self) -> object:
        return os.system, ("touch /tmp/aip-was-unpickled",)


def archive(tmp_path: Path, form: str) -> tuple[Path, nn.Module]:
    """An archive of a small network in one of the forms in which torch keeps one."""
    torch.manual_seed(0)
    net, example = Net().eval(), torch.rand(2, 3, SIDE, SIDE)
    path = tmp_path / ("net.pt2" if form == "exported" else "net.pth")
    if form == "weights":
        torch.save(net.state_dict(), path)
    elif form == "checkpoint":
        torch.save({"epoch": 3, "best_acc1": torch.tensor(0.5), "model_state_dict": net.state_dict()}, path)
    elif form == "scripted":
        torch.jit.script(net).save(str(path))
    elif form == "traced":
        torch.jit.trace(net, example).save(str(path))
    else:
        batch = torch.export.Dim("batch")
        torch.export.save(torch.export.export(net, (example,), dynamic_shapes=({0: batch},)), str(path))
    return path, net


def queued(user, path: Path, declared: Declared = SAID, **fields) -> ModelTask:
    brought = imports.from_upload(path, path.name, declared)
    return imports.import_model(user=user, brought=brought, declared=declared, **{"name": "net"} | fields)


#: Log and outputs of the converter by what it was given: to start a program that imports torch takes 1.5 s.
_converted: dict[bytes, tuple[str, Path]] = {}


@pytest.fixture(scope="module", autouse=True)
def _kept_outputs() -> Iterator[None]:
    yield
    for _log, outputs in _converted.values():
        shutil.rmtree(outputs)
    _converted.clear()


def convert(launch: Launch, run: RunDir) -> str:
    """Run the converter, or copy what it made of an equal archive earlier in this file; returns its log."""
    inputs = [Path(launch.env["AIP_ARCHIVE"]).read_bytes(), run.params.read_bytes()]
    digest = hashlib.sha256(b"\0".join(inputs)).digest()
    if digest in _converted:
        log, outputs = _converted[digest]
        shutil.copytree(outputs, run.outputs, dirs_exist_ok=True)
        return log
    log, outputs = execute(launch, run), Path(tempfile.mkdtemp(prefix="aip-converted-"))
    shutil.copytree(run.outputs, outputs, dirs_exist_ok=True)
    _converted[digest] = log, outputs
    return log


def execute(launch: Launch, run: RunDir) -> str:
    """Run a job's program as it is put into its run; returns its log."""
    paths = {"AIP_PARAMS": str(run.params), "AIP_OUTPUT_DIR": str(run.outputs), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        launch.argv, cwd=run.code, env={"PATH": os.environ["PATH"], **launch.env, **paths}, capture_output=True,
        text=True, timeout=180, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def ran(task: ModelTask) -> str:
    """Run the job's program as it is put into its run, and let the kind keep what it left; gives its log."""
    set_state(task.job, "running")
    run = RunDir.for_attempt(task.job_id, 1)
    for folder in (run.code, run.outputs):
        folder.mkdir(parents=True, exist_ok=True)
    launch = ModelTaskKind().prepare(task.job, task.job.attempts.get(), run)
    log = convert(launch, run) if launch.argv[2] == "inference.registry.torch_archives" else execute(launch, run)
    ModelTaskKind().ended(task.job, task.job.attempts.get())
    task.refresh_from_db()
    return log


@pytest.mark.parametrize("form", first(1, ["exported", "scripted", "traced"]))
def test_program_of_torch_becomes_a_model_that_answers_as_it_did(alice, tmp_path, form):
    path, net = archive(tmp_path, form)
    task = queued(alice, path)

    output = ran(task)

    version = task.made
    assert version is not None, output
    assert (version.task, version.source, version.code_label) == ("classification", "import", path.name)
    assert [entry["name"] for entry in version.classes] == list(PETS)
    assert not model_jobs.archive_of(task.job).exists()
    images = torch.rand(3, 3, SIDE, SIDE)
    engine = Engine(version.path / "model.onnx")
    (answer,) = engine.run({engine.inputs[0].name: images.numpy()}).values()
    with torch.inference_mode():
        np.testing.assert_allclose(answer, net(images).numpy(), atol=1e-5)


@pytest.mark.parametrize("form", first(1, ["checkpoint", "weights"]))
def test_weights_of_torch_become_safetensors(alice, tmp_path, form):
    path, net = archive(tmp_path, form)
    task = queued(alice, path)

    assert "4 tensors" in ran(task)

    assert task.made.task == "weights"
    assert {entry["name"] for entry in task.made.files} == {"model.safetensors"}
    assert task.made.facts["parameters"] == sum(value.numel() for value in net.state_dict().values())
    assert [entry["name"] for entry in task.made.classes] == list(PETS)


def test_archive_with_more_than_weights_runs_nothing_and_says_what_it_holds(alice, tmp_path):
    Path("/tmp/aip-was-unpickled").unlink(missing_ok=True)
    path = tmp_path / "net.pth"
    torch.save({"w": torch.zeros(1), "more": Hostile()}, path)
    task = queued(alice, path)

    ran(task)

    assert not Path("/tmp/aip-was-unpickled").exists()
    assert task.made is None
    assert str(task.message).startswith("The archive contains more than weights (posix.system).")


@pytest.mark.parametrize("data", first(1, [pickle.dumps(Hostile()), b"", b"no archive", b"PK\x03\x04 cut"]))
def test_damaged_archive_is_said_to_be_damaged(alice, tmp_path, data):
    (tmp_path / "net.pth").write_bytes(data)
    task = queued(alice, tmp_path / "net.pth")

    ran(task)

    assert task.made is None
    assert "archive" in str(task.message)


def test_program_without_a_declared_size_asks_for_it(alice, tmp_path):
    path, _net = archive(tmp_path, "scripted")
    task = queued(alice, path, Declared(task="classification", labels=PETS, pixels="unit"))

    ran(task)

    assert "The archive contains a program. Enter its input size (width and" in str(task.message)


def test_declaration_that_does_not_fit_the_program_is_said_on_the_job(alice, tmp_path, as_alice):
    path, _net = archive(tmp_path, "scripted")
    task = queued(alice, path, Declared(task="classification", labels=("cat",), pixels="unit", width=SIDE, height=SIDE))

    ran(task)

    assert task.made is None
    assert "the labels name 1." in str(task.message)
    assert "predicts 2 classes" in as_alice.get(f"/jobs/{task.job_id}/").content.decode()


def test_ending_twice_makes_one_version(alice, tmp_path):
    path, _net = archive(tmp_path, "weights")
    task = queued(alice, path)
    ran(task)

    ModelTaskKind().ended(task.job, task.job.attempts.get())
    ModelTask.objects.filter(pk=task.pk).update(made=None)
    ModelTaskKind().ended(task.job, task.job.attempts.get())  # the name is taken by then

    assert ModelVersion.objects.count() == 1


def test_archive_becomes_a_version_of_a_model_that_is_still_ones_own(alice, bob, tmp_path):
    model = factory.model_version(alice, tmp_path).model
    path, _net = archive(tmp_path, "weights")
    task, late = queued(alice, path, model=model, name=""), queued(alice, path, model=model, name="")

    ran(task)
    Model.objects.filter(pk=model.pk).update(owner=bob)
    ran(late)

    assert (task.made.model, task.made.number) == (model, 2)
    assert late.made is None
    assert "you can no longer edit it" in str(late.message)


def test_links_among_the_outputs_of_a_reader_are_not_followed(alice, tmp_path):
    path, _net = archive(tmp_path, "weights")
    task = queued(alice, path)
    set_state(task.job, "running")
    outputs = RunDir.for_attempt(task.job_id, 1).outputs
    (outputs / "model").mkdir(parents=True)
    factory.model_version(alice, tmp_path, name="other")
    os.symlink(Model.objects.get(name="other").versions.get().path / "model.onnx", outputs / "model" / "model.onnx")

    ModelTaskKind().ended(task.job, task.job.attempts.get())

    task.refresh_from_db()
    assert task.made is None


def test_job_that_was_lost_is_run_once_more(alice, tmp_path):
    path, _net = archive(tmp_path, "weights")
    task = queued(alice, path)
    kind = ModelTaskKind()
    set_state(task.job, "running")  # and its machine died: nothing is among its outputs
    kind.ended(task.job, task.job.attempts.get())

    kind.check_restore(task.job)
    ran(task)

    assert task.made is not None
    with pytest.raises(Vanished, match=r"Import the model again."):
        kind.check_restore(task.job)  # what it would read is a version now


def test_restoring_a_measurement_needs_a_version_that_one_may_use(alice, bob, tmp_path):
    version = factory.model_version(alice, tmp_path)
    task = model_jobs.measure(user=alice, version=version)

    ModelTaskKind().check_restore(task.job)
    Model.objects.filter(pk=version.model_id).update(owner=bob)
    with pytest.raises(Vanished):
        ModelTaskKind().check_restore(task.job)
    version.model.delete()
    with pytest.raises(Vanished):
        ModelTaskKind().check_restore(task.job)
    set_state(task.job, "running")
    with pytest.raises(Vanished, match="was deleted"):
        ModelTaskKind().prepare(task.job, task.job.attempts.get(), RunDir.for_attempt(task.job_id, 1))
    ModelTaskKind().ended(task.job, task.job.attempts.get())
    assert ModelTaskKind().url(task.job) == f"/jobs/{task.job_id}/"


def test_names_and_declarations_are_refused_before_a_job_is_queued(alice, tmp_path):
    factory.model_version(alice, tmp_path, name="net")
    path, _net = archive(tmp_path, "weights")

    with pytest.raises(DomainError) as refused:
        queued(alice, path, Declared(task="cooking"))

    assert {error.blamed for error in refused.value.every} == {"name", "task"}
    assert not ModelTask.objects.exists()


@pytest.mark.parametrize("kind", first(1, ["detection", "classification"]))
def test_version_is_measured_by_its_own_program(alice, tmp_path, kind):
    version = factory.model_version(alice, tmp_path, task=kind)
    task = model_jobs.measure(user=alice, version=version)

    output = ran(task)

    figures = task.figures
    assert figures, output
    assert 0 < figures["p50_ms"] <= figures["p95_ms"]
    assert (figures["batch"], figures["threads"], figures["provider"]) == (8, 1, "CPUExecutionProvider")
    assert figures["images_per_s"] > 0
    assert figures["busy"] >= 1


def test_figures_that_are_none_are_not_kept(alice, tmp_path):
    task = model_jobs.measure(user=alice, version=factory.model_version(alice, tmp_path))
    set_state(task.job, "running")
    outputs = RunDir.for_attempt(task.job_id, 1).outputs
    outputs.mkdir(parents=True)
    for text in ('{"p50_ms": NaN}', "[]", '{"p50_ms": "fast"}', "{" * 100_000):
        (outputs / "speed.json").write_text(text)
        ModelTaskKind().ended(task.job, task.job.attempts.get())

    task.refresh_from_db()
    assert task.figures == {}


def test_weights_cannot_be_measured_nor_what_is_no_longer_ones_own(alice, bob, tmp_path):
    path, _net = archive(tmp_path, "weights")
    converted = queued(alice, path)
    ran(converted)

    with pytest.raises(model_jobs.CannotMeasure):
        model_jobs.measure(user=alice, version=converted.made)

    version = factory.model_version(alice, tmp_path)
    task = model_jobs.measure(user=alice, version=version)
    Model.objects.filter(pk=version.model_id).update(owner=bob)
    set_state(task.job, "running")
    with pytest.raises(Vanished):
        ModelTaskKind().prepare(task.job, task.job.attempts.get(), RunDir.for_attempt(task.job_id, 1))


def test_page_measures_and_shows_it(as_alice, alice, bob, tmp_path):
    version = factory.model_version(alice, tmp_path, visibility="public")

    response = as_alice.post(f"/models/versions/{version.pk}/measure/")
    task = ModelTask.objects.get()
    waiting = as_alice.get(f"/models/versions/{version.pk}/speed/").content.decode()
    ran(task)
    ModelTask.objects.filter(pk=task.pk).update(figures=task.figures | {"node": "box-7"})
    page = as_alice.get(response.url).content.decode()
    client = APIClient()
    client.force_authenticate(bob)
    rows = client.get(f"/api/v1/model-versions/{version.pk}/measurements/").json()

    assert f"/jobs/{task.job_id}/" in waiting
    assert "every 2s" in waiting
    assert "img/s" in page
    assert "box-7" in page
    assert "every 2s" not in page
    assert rows[0]["figures"]["node"] == "box-7"
    assert client.get(f"/api/v1/model-tasks/{task.pk}/").status_code == 404


def test_api_measures_once_per_key(api, alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    route, key = f"/api/v1/model-versions/{version.pk}/measurements/", {"Idempotency-Key": "key-12345"}

    first = api.post(route, {"cpus": 3}, format="json", headers=key)
    again = api.post(route, {"cpus": 3}, format="json", headers=key)

    assert (first.status_code, first.json()["act"]) == (202, "measure")
    assert first.json()["id"] == again.json()["id"]
    assert ModelTask.objects.get().job.cpus == 3
    assert json.loads(json.dumps(api.get(route).json()))[0]["figures"] == {}


def test_second_publisher_says_nothing_against_what_the_first_made(alice, tmp_path):
    path, _net = archive(tmp_path, "scripted")
    task = queued(alice, path)
    ran(task)
    assert task.made is not None

    stale = ModelTask.objects.get(pk=task.pk)
    stale.made = None
    model_jobs._register(stale, RunDir.for_attempt(task.job_id, 1).outputs)

    task.refresh_from_db()
    assert not task.message
    assert ModelVersion.objects.count() == 1
    page = task_panel.context(task.job, alice)
    assert page is not None
    assert "url" in page
