"""Environments in container images: started, opened, stopped and restored; what pip installs in them is kept."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from aiplatform import env
from aiplatform.lib.errors import Invalid
from tests.environments.conftest import STUB
from tests.environments.in_containers import (
    again,
    begin,
    end,
    engine,
    image,
    installed,
    machine,
    ready,
    root,
    said,
    started,
)
from tests.running import printed
from tests.running import wait_for as until
from tests.workers.engines import FakeEngine
from training.environments import jupyter, services, vscode
from training.environments.services import EnvironmentRequest
from workers.access.proxy.models import PublishedPort
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.images.models import ImageUse
from workers.images.services import uses
from workers.images.store import boxes, paths
from workers.jobs import actions
from workers.supervisor import exec_socket, processes, records
from workers.supervisor.engine import Engine
from workers.supervisor.sandbox import CONTAINER

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sockets("a container engine, exec servers of jobs, JupyterLab"),
]
__all__ = ["engine", "image", "machine", "root", "started"]
CODE_SERVER = Path(__file__).parents[1] / "fakes" / "code_server.py"


def words_of(pid: int) -> bytes:
    """The command line of a process; nothing of one that ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_environment_in_a_container_is_ready_and_answers_through_its_own_way(started, alice):
    row = ready(started())
    run = RunDir.for_attempt(row.pk, 1)

    assert again(row).job.events.filter(event="ready").exists()
    attempt = Attempt.objects.get(job=row.pk)
    assert attempt.sandbox_tier == CONTAINER
    assert jupyter.query_server(jupyter.whom(row.job, attempt, services.token_of(row))) is not None
    assert jupyter.query_server(jupyter.whom(row.job, attempt, "another")) is None
    assert said(row, "echo $HOME; pwd").split()[0].endswith(f"home/{alice.username}")
    assert services.token_of(row) not in run.log.read_text()
    pids = processes.descendants(records.read(run.path / records.SUPERVISOR)["child"]["pid"])
    assert pids
    lines = [words for pid in pids if (words := words_of(pid))]
    assert lines
    assert not [words for words in lines if services.token_of(row).encode() in words]


def test_environment_in_a_container_keeps_what_was_installed_over_stop_and_restore(started, alice):
    row = ready(started())
    said(row, 'mkdir -p "$AIP_PACKAGES/bin" && echo kept > "$AIP_PACKAGES/note" && echo home > "$HOME/note"')
    assert end(RunDir.for_attempt(row.pk, 1).path, "stop")["requested"] == "stop"
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
    record = until(lambda: records.read(RunDir.for_attempt(row.pk, 1).path / records.EXIT), 60)

    assert record["code"] == 1
    assert "no jupyter-lab on its PATH. Choose an image with JupyterLab" in printed(RunDir.for_attempt(row.pk, 1).log)


def test_environment_in_a_container_without_python_ends_and_says_what_to_do(started, monkeypatch):
    monkeypatch.setattr(env, "CONTAINER_PYTHON", "/no/such/python3")

    row = started()
    record = until(lambda: records.read(RunDir.for_attempt(row.pk, 1).path / records.EXIT), 60)

    assert record["code"] == 1
    assert "no python3 on its PATH, which JupyterLab needs" in printed(RunDir.for_attempt(row.pk, 1).log)


def test_environment_in_a_container_goes_on_without_its_exec_server_and_ends_with_its_supervisor(started, engine):
    row = ready(started())
    run = RunDir.for_attempt(row.pk, 1).path
    kept = records.read(run / records.SUPERVISOR)
    for pid in processes.descendants(kept["child"]["pid"]):
        if processes.name(pid) == exec_socket.NAME:
            os.kill(pid, signal.SIGKILL)

    assert processes.descendants(kept["child"]["pid"])
    os.kill(kept["pid"], signal.SIGKILL)

    left = Engine(str(engine.socket))
    until(lambda: not left.labelled(f"aip.run={run}"), 60, "its container lives on")
    assert stat.S_ISDIR((paths.box(row.pk) / boxes.UPPER).stat().st_mode)


def test_vscode_on_the_path_of_a_container_image_is_offered_and_opened(started, engine, root):
    if not isinstance(engine, FakeEngine):
        pytest.skip("the operator's image has none")
    installed(root / "image", CODE_SERVER.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    (root / "image/bin/jupyter-lab").rename(root / "image/bin/code-server")
    installed(root / "image", STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))

    row = ready(started())
    assert row.vscode == "code-server"
    vscode.start(PublishedPort.objects.get(job=row.pk, name=vscode.NAME))

    assert "listening" in (RunDir.for_attempt(row.pk, 1).outputs / vscode.LOG).read_text()


def test_environment_in_a_container_is_paused_and_goes_on(started):
    row = ready(started())
    run = RunDir.for_attempt(row.pk, 1).path
    asked = jupyter.whom(row.job, Attempt.objects.get(job=row.pk), services.token_of(row))

    records.write_request(run, "pause")
    until(lambda: (records.read(run / records.STATUS) or {}).get("state") == "paused", 60)
    records.write_request(run, "run")
    until(lambda: (records.read(run / records.STATUS) or {}).get("state") == "running", 60)

    until(lambda: jupyter.query_server(asked) is not None, 60)


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
    assert uses.find(row.job).boxed
