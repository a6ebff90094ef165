"""Ways into a container: its exec server, and what a job inside can do to it. Small engine, and a real one if there."""

from __future__ import annotations

import ast
import os
import signal
import tempfile
from pathlib import Path

import pytest

from tests.cases import case_table
from tests.running import wait_for as until
from tests.workers.engines import FakeEngine, engine, real, run
from tests.workers.exec_client import Asked
from workers.supervisor import exec_socket, handover, processes, records

pytestmark = pytest.mark.sockets("a container engine's double, exec servers of jobs")
__all__ = ["engine", "real", "run"]  # fixtures
WAITS = ["sh", "-c", "echo up; sleep 600"]
LISTENS = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print("up", server.getsockname()[1], flush=True)
    while True:
        one, _ = server.accept()
        said = one.makefile("rb").read()
        one.sendall(said[::-1])
        one.close()
"""
#: Looks for everything by which it could get at its own way in.
REACHES = """
import os, socket, sys
place = next(line.split()[4] for line in open("/proc/self/mountinfo") if ".in" in line.split()[4][-3:])
for act in (os.unlink, lambda path: os.rename(path, path + "x"), lambda path: open(path + "y", "w")):
    try:
        act(place)
        print("changed", place)
    except OSError as exc:
        print("refused")
for path in (place, place[:-3]):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("connected", path)
    except OSError:
        print("refused")
print("up", flush=True)
import time
time.sleep(600)
"""


@pytest.fixture
def served(run):
    """Starts commands in containers with an exec server beside them, and waits until they say that they are up."""
    with tempfile.TemporaryDirectory(prefix="aip-x-") as folder:

        def one(argv, *, started=True, **more):
            path = Path(folder) / str(len(os.listdir(folder))) / "exec"
            path.parent.mkdir(mode=0o700)
            job = run(argv, exec_socket=str(path), read_only=[exec_socket.INSIDE], **more)
            job.socket = path
            if started:
                until(lambda: "up" in job.log())
            return job

        yield one


def test_session_in_a_container_has_codes_both_outputs_and_the_jobs_environment(served):
    job = served(WAITS, env={"OWN": "given"})

    with Asked(job.socket, act="session", command="echo $OWN; echo no >&2; exit 7") as one:
        assert one.finish() == {"code": 7}

    assert one.said == {b"O": b"given\n", b"R": b"no\n"}


def test_command_beside_an_exec_server_ends_as_it_would_alone(served):
    hows = ("exit 3", "kill -SEGV $$", "kill -9 $$", "exit 0")
    ends = [served(["sh", "-c", how], started=False).exit() for how in hows]

    told = [(end["code"], end["signal"]) for end in ends]
    assert told == [(3, None), (None, "SIGSEGV"), (None, "SIGKILL"), (0, None)]


def test_port_in_a_container_carries_bytes(served, engine):
    job = served([engine.python, "-I", "-c", LISTENS])
    sent = os.urandom(300_000)

    with Asked(job.socket, act="port", port=int(job.log().split()[1])) as one:
        assert one.answer == {"ok": True}
        one.socket.sendall(sent)
        one.socket.shutdown(1)
        assert one.bytes() == sent[::-1]


def test_terminal_and_file_transfer_work_in_a_container(served):
    job = served(WAITS)
    pty = {"term": "xterm", "rows": 24, "columns": 80}

    with Asked(job.socket, act="session", command="stty size 2>/dev/null || echo $TERM", pty=pty) as one:
        assert one.finish() == {"code": 0}
    with Asked(job.socket, act="sftp") as files:
        files.tell(b"I", b"\0\0\0\x05\x01\0\0\0\x03")  # its first packet: version 3
        assert files.frame()[1][4:9] == b"\x02\0\0\0\x03"


def test_job_cannot_touch_or_reach_its_own_way_in(served, engine):
    if isinstance(engine, FakeEngine):
        pytest.skip("the small engine keeps nothing apart")
    job = served([engine.python, "-I", "-c", REACHES])

    assert "changed" not in job.log()
    assert "connected" not in job.log()
    with Asked(job.socket, act="session", command="exit 4") as one:
        assert one.finish() == {"code": 4}


def test_container_without_python_runs_and_says_that_it_has_no_way_in(served):
    job = served(WAITS, about={"python": "/no/such/python"})

    assert "no python3 of version 3.9 or later" in job.log()
    job.wish("stop")
    assert job.exit()["requested"] == "stop"
    assert not job.socket.exists()


def test_exec_socket_goes_with_the_container(served):
    job = served(WAITS)
    assert job.socket.is_socket()
    until(lambda: not Path(f"{job.socket}{handover.SUFFIX}").exists())
    job.wish("stop")
    job.exit()

    assert not job.socket.exists()


def test_exec_server_of_a_container_is_killed_and_the_job_goes_on(served):
    job = served(WAITS)
    with Asked(job.socket, act="session", command="true") as one:
        one.finish()
    for pid in processes.descendants(job.supervisor["child"]["pid"]):
        if processes.name(pid) == exec_socket.NAME:
            os.kill(pid, signal.SIGKILL)

    until(lambda: refused(job))
    assert job.state() == "running"


def refused(job):
    try:
        Asked(job.socket, act="session", command="true").close()
    except ConnectionRefusedError:
        return True
    except ConnectionError:
        return False
    return False


@pytest.mark.parametrize(("told", "why"), [(handover._TOLD, handover.NO_PYTHON), ("up", handover.TIMED_OUT)])
def test_handover_gives_up_when_nobody_comes(tmp_path, told, why):
    from workers.supervisor.ticket import Ticket

    with tempfile.TemporaryDirectory(prefix="aip-x-") as folder:
        os.mkdir(f"{folder}/own", 0o700)
        ticket = Ticket(job=1, attempt=1, argv=[], env={}, cwd="/", exec_socket=f"{folder}/own/exec")
        one = handover.Handover(ticket, str(tmp_path), str(tmp_path / "log"))
        (tmp_path / "log").write_text(f"begins\n{told}\n")
        one.step(100.0)
        for moment in (101.0, 1000.0, 1100.0):  # a pause does not count, however long it is
            one.step(moment, paused=True)
        one.step(1101.0)
        waited = one.waits

        one.step(1101.0 + handover.TIMEOUT_S + 1)

        assert (waited, one.waits) == (True, False)
        assert records.read(tmp_path / handover.WAYS)["why"] == why
        assert os.listdir(f"{folder}/own") == []


@case_table("path", sorted(Path(exec_socket.INSIDE).glob("*.py")), ids=lambda path: path.name)
def test_what_runs_inside_is_understood_by_the_oldest_python_of_images(path):
    tree = ast.parse(path.read_text(), feature_version=handover.OLDEST)
    later = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    given = [node.returns for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.returns]
    given += [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation]
    unions = [one for each in given for one in ast.walk(each) if isinstance(one, ast.BinOp)]

    assert later or not unions
