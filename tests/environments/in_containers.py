"""An engine, an image with JupyterLab in it, and environments that run there."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from aiplatform import env
from tests.environments.conftest import STUB
from tests.factories import work
from tests.images.conftest import root
from tests.running import wait_for as until
from tests.workers.engines import FakeEngine, RealEngine
from training.environments import lifecycle, services
from training.environments.models import Environment
from training.environments.services import EnvironmentRequest
from workers.core.models import Attempt, Job, Node
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.execution import launch, tickets
from workers.execution.exec import channels, programs
from workers.images.containers import adding, copies
from workers.images.models import Image, NodeCopy, State
from workers.scheduling import placing
from workers.supervisor import engines, records
from workers.supervisor.sandbox import CONTAINER

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
        offer = engines.Offer(container=made.about, engine="real")
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
        adding.look_up_again(row)
        adding.run(row.pk)
        row.refresh_from_db()
        assert row.state == State.READY, row.why
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
                path = RunDir.for_attempt(pk, attempt.number).path
                if records.is_alive(records.read(path / records.SUPERVISOR) or {}):
                    end(path)


def begin(row) -> Environment:
    attempt = placing.place(row.pk, [(Node.objects.get().pk, [(Node.objects.get().devices.get(kind="cpu").pk, 1)])])
    launch.start(attempt.pk)
    run = RunDir.for_attempt(row.pk, attempt.number)
    for copy in NodeCopy.objects.filter(state=State.NEW):
        copies.run(copy.pk)
        launch.start(attempt.pk)
    attempt.refresh_from_db()
    assert attempt.ended_at is None, attempt.message
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
    home = RunDir.for_attempt(row.pk, row.job.attempt_number).path
    until(
        lambda: (home / records.EXIT).exists() or lifecycle.is_ready(lifecycle.see_ready(again(row))), 90, "no answer"
    )
    assert not (home / records.EXIT).exists(), RunDir.for_attempt(row.pk, row.job.attempt_number).log.read_text()
    return again(row)


def said(row, command: str) -> str:
    """What a shell inside says."""
    return programs.run(channels.way_to(again(row).job), command, patience_s=60).output
