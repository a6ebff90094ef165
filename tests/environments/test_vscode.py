"""VS Code of an environment: found, started when it is opened, kept running, and when work in it counts as use."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from aiplatform import env
from aiplatform.lib.errors import DomainError
from datasets.files import homes
from tests.factories import work
from tests.running import wait_for
from training.environments import lifecycle, panel, serve_vscode, services
from training.environments.models import Environment
from training.environments.services import EnvironmentRequest
from workers.access.proxy import activity, port_access
from workers.access.proxy.models import Admission, PublishedPort
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import JobState
from workers.execution import launch
from workers.execution.exec import channels
from workers.scheduling import placing
from workers.supervisor import records

FAKE = Path(__file__).parents[1] / "fakes" / "code_server.py"
KEEP_ALIVE = bytes([9]) + bytes(12)
TYPED = bytes([1]) + bytes(12) + b"{}"


def installed(folder: Path, name: str = "code-server") -> Path:
    """The stand-in in a folder as programs are installed."""
    program = folder / "bin" / name
    program.parent.mkdir(parents=True)
    program.write_text(FAKE.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -I", 1))
    program.chmod(0o755)
    return program


def ask(place: Path, path: str, method: str = "GET") -> dict:
    with socket(AF_UNIX) as channel:
        channel.settimeout(20)
        channel.connect(str(place))
        asked = HTTPConnection("job")
        asked.sock = channel
        asked.request(method, path)
        return json.loads(asked.getresponse().read())


class Kept:
    """VS Code kept by the program that jobs run for it, without a job round it."""

    def __init__(self, folder: Path, program: str) -> None:
        self.place, self.log = folder / "v.sock", folder / "vscode.log"
        self.argv = [sys.executable, "-I", "-", program, str(self.place), "/", str(folder), str(self.log)]

    def start(self) -> str:
        source = serve_vscode.__file__
        with Path(source).open("rb") as script:
            return subprocess.run(self.argv, stdin=script, capture_output=True, check=True, timeout=90).stdout.decode()

    def watcher(self) -> int:
        """The process that watches: the parent of VS Code."""
        stat = Path(f"/proc/{ask(self.place, '/about')['pid']}/stat").read_text()
        return int(stat.rsplit(")", 1)[1].split()[1])


@pytest.fixture
def kept():
    with tempfile.TemporaryDirectory(prefix="aip-v-") as folder:
        one = Kept(Path(folder), str(installed(Path(folder) / "code")))
        yield one
        with contextlib.suppress(OSError):
            os.killpg(one.watcher(), signal.SIGKILL)


@pytest.mark.sockets("the stand-in for VS Code listens on one")
def test_vscode_is_started_once_and_again_when_it_dies(kept):
    assert kept.start() == "ready\n"
    first = ask(kept.place, "/about")
    assert kept.start() == "ready\n"
    assert ask(kept.place, "/about") == first

    os.kill(first["pid"], signal.SIGKILL)

    def another() -> bool:
        try:
            return ask(kept.place, "/about")["mine"] != first["mine"]
        except OSError:
            return False

    wait_for(another, 30, "nobody started it again")
    assert "ended with -9" in kept.log.read_text()
    assert oct(kept.place.stat().st_mode)[-3:] == "600"


@pytest.mark.sockets("the stand-in for VS Code listens on one")
def test_vscode_that_lost_its_watcher_is_used_and_later_replaced(kept):
    kept.start()
    first = ask(kept.place, "/about")
    os.kill(kept.watcher(), signal.SIGKILL)

    assert kept.start() == "ready\n"
    assert ask(kept.place, "/about") == first
    os.kill(first["pid"], signal.SIGKILL)
    wait_for(
        lambda: (
            not Path(f"/proc/{first['pid']}/cmdline").exists() or not Path(f"/proc/{first['pid']}/cmdline").read_bytes()
        ),
        20,
        "it lives",
    )
    assert kept.start() == "ready\n"
    assert ask(kept.place, "/about")["mine"] != first["mine"]


def test_vscode_that_never_stays_is_given_up_with_its_words_in_the_log(tmp_path):
    broken = tmp_path / "code-server"
    broken.write_text("#!/bin/sh\necho no room for me\nexit 3\n")
    broken.chmod(0o755)
    one = Kept(tmp_path, str(broken))

    assert one.start() == "failed\n"
    assert one.log.read_text().count("no room for me") == serve_vscode.MAX_QUICK
    assert "ended with 3" in one.log.read_text()


def test_vscode_servers_are_told_where_they_stand_each_in_its_own_words():
    coder = serve_vscode.options("/opt/code-server", "/tmp/v.sock", "/", "/home/a")
    other = serve_vscode.options("/opt/openvscode-server", "/tmp/v.sock", "/jobs/3/vscode/", "/home/a")

    assert coder[1:5] == ["--auth", "none", "--socket", "/tmp/v.sock"]
    assert coder[-1] == "/home/a"
    assert other[1:6] == [
        "--socket-path",
        "/tmp/v.sock",
        "--server-base-path",
        "/jobs/3/vscode/",
        "--without-connection-token",
    ]


def test_open_editor_alone_is_no_sign_of_a_person(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    tab = activity.Spoken({"reconnectionToken": "t", "skipWebSocketFrames": "false"})

    def seconds(count: int, *words: bytes) -> bool:
        found = False
        for _second in range(count):
            clock[0] += 1.0
            found |= sum(tab.is_from_user(word) for word in words) > 0  # all of them are heard
        return found

    assert not seconds(600, KEEP_ALIVE)
    assert not any(seconds(1, TYPED) or seconds(5, KEEP_ALIVE) for _answer in range(20))
    assert seconds(5, TYPED, TYPED)
    assert activity.Spoken({}).is_from_user('["stdin", "ls"]')


@pytest.fixture
def code_server(tmp_path, monkeypatch):
    program = installed(tmp_path / "code")
    monkeypatch.setattr(env, "CODE_SERVER", str(program))
    return program


@pytest.fixture
def running(alice, stub, settings, db):
    """Alice's environment in its sandbox, ready."""
    settings.NODE = "node1"
    node = work.node(gpus=1, cores=4)
    with tempfile.TemporaryDirectory(prefix="aip-r-") as folder:
        settings.RUN_DIR = Path(folder)
        row = services.submit(user=alice, request=EnvironmentRequest(gpus_per_node=1, cpus=1.0, folder="work"))
        attempt = placing.place(row.pk, [(node.pk, [(node.devices.get(kind="gpu").pk, 8)])])
        launch.start(attempt.pk)
        run = RunDir.for_attempt(row.pk, 1)
        wait_for((run.path / records.SUPERVISOR).exists)
        Job.objects.filter(pk=row.pk).update(state=JobState.RUNNING)
        Attempt.objects.filter(pk=attempt.pk).update(state=JobState.RUNNING)

        def ready() -> bool:
            found = Environment.objects.select_related("job__owner", "job__cluster").get(pk=row.pk)
            return lifecycle.is_ready(lifecycle.see_ready(found))

        wait_for(ready, 60, "JupyterLab does not respond")
        yield Environment.objects.select_related("job__owner", "job__cluster").get(pk=row.pk)
        records.write_request(run.path, "kill")
        wait_for(lambda: records.read(run.path / records.EXIT))


pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.sockets("exec servers of jobs")
def test_environment_opens_vscode_inside_its_sandbox(code_server, running, alice, as_alice):
    assert running.vscode == "code-server"
    assert "Open VS Code" in as_alice.get(f"/environments/{running.pk}/state/").content.decode()
    assert as_alice.get(f"/api/v1/environments/{running.pk}/").json()["opens"] == ["jupyter", "vscode"]

    answer = as_alice.post(f"/api/v1/jobs/{running.pk}/ports/vscode/open/")

    assert answer.status_code == 200, answer.json()
    assert f"/jobs/{running.pk}/vscode/_enter?ticket=" in answer.json()["url"]
    row = PublishedPort.objects.get(name="vscode")
    assert (row.by_platform, row.keeps_path) == (True, False)
    with channels.connect(channels.way_to(running.job), {"act": "unix", "path": row.socket}) as channel:
        asked = HTTPConnection("job")
        asked.sock = channel
        asked.request("GET", "/about")
        about = json.loads(asked.getresponse().read())
    assert about["folder"] == str(homes.path_of(alice) / "work")
    assert about["auth"] == "none"
    assert "listening" in (RunDir.for_attempt(running.pk, 1).outputs / "vscode.log").read_text()


@pytest.mark.sockets("exec servers of jobs")
def test_environment_without_vscode_offers_none(running, as_alice):
    assert running.vscode == ""
    assert not panel.facts(running, running.job.owner)["vscode_url"]
    assert as_alice.get(f"/api/v1/environments/{running.pk}/").json()["opens"] == ["jupyter"]
    assert as_alice.post(f"/api/v1/jobs/{running.pk}/ports/vscode/open/").status_code == 404


@pytest.mark.sockets("exec servers of jobs")
def test_vscode_that_cannot_start_is_refused_before_a_ticket_is_made(code_server, running, alice, bob):
    code_server.write_text("#!/bin/sh\nexit 3\n")
    row = PublishedPort.objects.get(name="vscode")

    with pytest.raises(DomainError) as refused:
        port_access.open_port(row, user=alice, host="127.0.0.1", secure=False)
    assert (refused.value.code, "vscode.log" in refused.value.message) == ("vscode_not_started", True)
    with pytest.raises(DomainError, match="owner"):
        port_access.open_port(row, user=bob, host="127.0.0.1", secure=False)
    assert not Admission.objects.exists()


@pytest.mark.sockets("exec servers of jobs")
def test_environment_list_offers_what_can_be_done_with_a_running_one(code_server, running, as_alice, as_olga):
    mine = as_alice.get("/environments/").content.decode()
    others = as_olga.get("/environments/").content.decode()

    acts = ("Open env", "in VS Code", "Upload code to", "Pause", "Ports of", "Stop ")
    row = mine.partition(f'id="environment-{running.pk}"')[2].partition("</tr>")[0].replace(running.job.name, "env")
    assert [act for act in acts if act not in row] == []
    assert "Delete" not in row
    row = others.partition(f'id="environment-{running.pk}"')[2].partition("</tr>")[0]
    assert "Stop" in row
    assert "Upload" not in row
