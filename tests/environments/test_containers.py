"""Environments in container images: started, opened, stopped and restored, and what pip installs in them is kept."""

from __future__ import annotations

import os
import signal
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from aiplatform import env
from aiplatform.lib.errors import Invalid
from tests.environments.conftest import STUB
from tests.factories import work
from tests.images.conftest import root
from tests.running import printed
from tests.running import wait_for as until
from tests.workers.engines import FakeEngine, RealEngine
from training.environments import jupyter, life, services
from training.environments.models import Environment
from training.environments.services import EnvironmentRequest
from workers.exec import channels, programs
from workers.execution import launching, tickets
from workers.images.containers import adding
from workers.images.models import Image, ImageUse, State
from workers.images.services import boxes, places, uses
from workers.jobs import actions
from workers.models import Attempt, Job, Node
from workers.runs import RunDir
from workers.scheduling import placing
from workers.states import JobState
from workers.supervisor import engines, exec_socket, processes, records
from workers.supervisor.engine import Engine
from workers.supervisor.sandbox import CONTAINER

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("a container engine, exec servers of jobs, JupyterLab"),
]
__all__ = ["root"]


def installed(folder: Path, text: str) -> Path:
    """A program called jupyter-lab, as an image has one on its PATH."""
    program = folder / "bin" / "jupyter-lab"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    folder.chmod(0o755)
    return program


@pytest.fixture(params=["fake", "real"])
def engine(request, root, monkeypatch):
    """An engine that this machine offers, with an image that has a JupyterLab."""
    if request.param == "real":
        made = RealEngine()
        offer = engines.offer(env.CONTAINER_IMAGE, chosen=env.CONTAINER_SOCKET, root=str(root))
        monkeypatch.setattr(env, "CONTAINER_PYTHON", "python3")
    else:
        installed(root / "image", STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
        made = FakeEngine(root / "engine", image_path=f"{root}/image/bin:{Path(sys.executable).parent}:/usr/bin:/bin")
        about = made.about | {"user": f"{os.geteuid()}:{os.getegid()}"}
        offer = engines.Offer(container=about, engine="docker 1.0")
        monkeypatch.setattr(env, "CONTAINER_PYTHON", sys.executable)
    monkeypatch.setattr(tickets, "tier", lambda: (CONTAINER, ""))
    monkeypatch.setattr(tickets, "containers", lambda: offer)
    yield made
    if request.param == "fake":
        made.kill()


@pytest.fixture
def machine(db, settings):
    settings.NODE = "node1"
    node = work.node(cores=4)
    Node.objects.filter(pk=node.pk).update(sandbox_tier=CONTAINER)
    return node


@pytest.fixture
def image(engine, machine, alice):
    """Alice's container image, which lies on the machine already."""
    name = env.CONTAINER_IMAGE if isinstance(engine, RealEngine) else "image"
    row = Image.objects.create(
        kind=Image.Kind.CONTAINER, owner=alice, name="lab", source=Image.Source.LOCAL, reference=name,
        state=State.READY, digest=name,
    )  # fmt: skip
    if isinstance(engine, RealEngine):
        adding.look_again(row)
        adding.run(row.pk)
        row.refresh_from_db()
    return row


@pytest.fixture
def started(image, machine, alice, settings):
    """`started()`: Alice's environment in the image, begun as the agent does it."""
    begun = []
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        settings.RUN_DIR = Path(folder)

        def one(**fields) -> Environment:
            request = EnvironmentRequest(**{"cpus": 1.0, "image": image, "folder": "work"} | fields)
            row = services.submit(user=alice, request=request)
            begun.append(row.pk)
            return begin(row)

        yield one
        for pk in begun:
            for attempt in Attempt.objects.filter(job=pk):
                end(RunDir.of(pk, attempt.number).path)


def begin(row) -> Environment:
    attempt = placing.place(row.pk, [(Node.objects.get().pk, [(Node.objects.get().devices.get(kind="cpu").pk, 1)])])
    launching.start(attempt.pk)
    run = RunDir.of(row.pk, attempt.number)
    until((run.path / records.SUPERVISOR).exists)
    Job.objects.filter(pk=row.pk).update(state=JobState.RUNNING)
    Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING)
    return again(row)


def end(run: Path, wish: str = "kill") -> dict:
    records.write_request(run, wish)
    return until(lambda: records.read(run / records.EXIT), 60)


def again(row) -> Environment:
    return Environment.objects.select_related("job__owner", "job__cluster").get(pk=row.pk)


def ready(row) -> Environment:
    home = RunDir.of(row.pk, row.job.attempt_number).path
    until(lambda: (home / records.EXIT).exists() or life.is_ready(life.see_ready(again(row))), 90, "no answer")
    assert not (home / records.EXIT).exists(), RunDir.of(row.pk, row.job.attempt_number).log.read_text()
    return again(row)


def said(row, command: str) -> str:
    """What a shell inside says."""
    return programs.run(channels.way_to(again(row).job), command, patience_s=60).output


def test_environment_in_a_container_is_ready_and_answers_through_its_own_way(started, alice):
    row = ready(started())
    run = RunDir.of(row.pk, 1)

    assert again(row).job.events.filter(event="ready").exists()
    attempt = Attempt.objects.get(job=row.pk)
    assert attempt.sandbox_tier == CONTAINER
    assert jupyter.ask(jupyter.whom(row.job, attempt, services.token_of(row))) is not None
    assert jupyter.ask(jupyter.whom(row.job, attempt, "another")) is None
    assert said(row, "echo $HOME; pwd").split()[0].endswith(f"home/{alice.username}")
    assert services.token_of(row) not in run.log.read_text()
    pids = processes.descendants(records.read(run.path / records.SUPERVISOR)["child"]["pid"])
    assert pids
    assert not [pid for pid in pids if services.token_of(row).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_environment_in_a_container_keeps_what_was_installed_over_stop_and_restore(started, alice):
    row = ready(started())
    said(row, 'mkdir -p "$AIP_PACKAGES/bin" && echo kept > "$AIP_PACKAGES/note" && echo home > "$HOME/note"')
    assert end(RunDir.of(row.pk, 1).path, "stop")["requested"] == "stop"
    Job.objects.filter(pk=row.pk).update(state=JobState.QUEUED)
    Attempt.objects.filter(job=row.pk).update(state=JobState.STOPPED, ended_at=again(row).job.created_at)

    assert boxes.machines(Job.objects.filter(pk=row.pk)) == {row.pk: "node1"}
    row = ready(begin(again(row)))

    assert said(row, 'cat "$AIP_PACKAGES/note" "$HOME/note"').split() == ["kept", "home"]
    assert said(row, 'echo "$PATH"').startswith("/opt/packages/0/bin:")


def test_environment_in_a_container_without_jupyterlab_ends_and_says_what_to_do(started, engine, root):
    if not isinstance(engine, FakeEngine):
        pytest.skip("the operator's image has one")
    (root / "image/bin/jupyter-lab").unlink()

    row = started()
    record = until(lambda: records.read(RunDir.of(row.pk, 1).path / records.EXIT), 60)

    assert record["code"] == 1
    assert "no jupyter-lab on its PATH. Choose an image with JupyterLab" in printed(RunDir.of(row.pk, 1).log)


def test_environment_in_a_container_without_python_ends_and_says_what_to_do(started, monkeypatch):
    monkeypatch.setattr(env, "CONTAINER_PYTHON", "/no/such/python3")

    row = started()
    record = until(lambda: records.read(RunDir.of(row.pk, 1).path / records.EXIT), 60)

    assert record["code"] == 1
    assert "no python3 on its PATH, which JupyterLab needs" in printed(RunDir.of(row.pk, 1).log)


def test_environment_in_a_container_goes_on_without_its_exec_server_and_ends_with_its_supervisor(started, engine):
    row = ready(started())
    run = RunDir.of(row.pk, 1).path
    kept = records.read(run / records.SUPERVISOR)
    for pid in processes.descendants(kept["child"]["pid"]):
        if processes.name(pid) == exec_socket.NAME:
            os.kill(pid, signal.SIGKILL)

    assert processes.descendants(kept["child"]["pid"])
    os.kill(kept["pid"], signal.SIGKILL)

    left = Engine(str(engine.socket))
    until(lambda: not left.labelled(f"aip.run={run}"), 60, "its container lives on")
    assert stat.S_ISDIR((places.box(row.pk) / boxes.UPPER).stat().st_mode)


def test_environment_without_an_image_is_refused_where_there_are_containers_alone(machine, alice):
    with pytest.raises(Invalid, match="Choose a container image with JupyterLab") as caught:
        services.check(alice, EnvironmentRequest(cpus=1.0))

    assert caught.value.blamed == "image"


def test_environment_form_offers_container_images(started, image, as_alice):
    page = as_alice.get("/environments/new/").content.decode()

    assert f'<option value="{image.pk}">' in page


def test_environment_in_a_container_is_stopped_by_its_owner(started, alice):
    row = ready(started())

    actions.stop(row.job, by=alice)

    assert ImageUse.objects.get(job=row.pk).node == "node1"
    assert uses.of(row.job).boxed
