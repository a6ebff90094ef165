"""The fork server: what it forks, what it refuses, and what survives its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import sys
import threading
from pathlib import Path

import pytest
from django.db import connections

from aiplatform.cli import children, fork_server, forks, processes
from aiplatform.cli.forks import ForkServer
from aiplatform.cli.processes import ForkedProcess, ForkServerProcess, ProcessSupervisor
from aiplatform.lib.process_title import set_title
from tests.waiting import until


@pytest.fixture
def small(monkeypatch):
    """A fork server that imports nothing: `tests/aiplatform/small_fork_server.py`."""
    monkeypatch.setattr("aiplatform.cli.forks.PROGRAM", "tests.aiplatform.small_fork_server")


def role(server: ForkServerProcess, module: str, name: str = "role", **more) -> ForkedProcess:
    return ForkedProcess(name, [sys.executable, "-m", module], server=lambda: server.server, **more)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except FileNotFoundError:
        return ""


async def test_role_is_our_child_with_its_own_command_line_and_survives_the_fork_server(small, capfd):
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    sleeper = role(server, "tests.fakes.sleeper")
    supervisor.keep_running(server)
    supervisor.keep_running(sleeper)
    child = await until(lambda: supervisor.running.get("role"))

    assert parent_of(child.pid) == os.getpid()
    await until(lambda: os.getsid(child.pid) == child.pid)
    await until(lambda: command_of(child.pid).endswith("-m tests.fakes.sleeper"))

    first = supervisor.running["forks"]
    first.kill()
    await until(lambda: supervisor.running.get("forks") not in (None, first))
    assert child.returncode is None
    child.kill()
    second = await until(lambda: (found := supervisor.running.get("role")) is not child and found)
    assert parent_of(second.pid) == os.getpid()

    await supervisor.stop([server, sleeper])
    assert child.returncode == -signal.SIGKILL
    assert supervisor.running == {}


async def test_role_ends_with_the_code_of_its_program_and_its_output_is_shown(small, capfd):
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    supervisor.keep_running(server)

    code = await supervisor.run(role(server, "tests.fakes.leaver", env={"AIP_TEST_CODE": "7"}))
    await supervisor.stop([server])

    assert code == 7
    assert "leaving with 7" in capfd.readouterr().out


async def test_spare_takes_over_at_once_when_the_fork_server_is_killed(small, capfd):
    before = set(children._live)
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    sleeper = role(server, "tests.fakes.sleeper")
    supervisor.keep_running(server)
    supervisor.keep_running(sleeper)
    first, spare = (await until(lambda: supervisor.running.get("forks"))), await until(lambda: server.server._spare)

    first.kill()
    second = await until(lambda: (found := supervisor.running.get("forks")) is not first and found)
    await until(lambda: server.server._spare)
    supervisor.running["role"].kill()
    await until(lambda: "role" not in supervisor.running)
    await until(lambda: "role" in supervisor.running)
    shown = capfd.readouterr().out
    await supervisor.stop([server, sleeper])

    assert second is spare[1]
    assert shown.count("importing") == 0
    assert supervisor.running == {}
    await until(lambda: children._live <= before)


async def test_spare_that_is_killed_is_replaced(small, capfd):
    before = set(children._live)
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    sleeper = role(server, "tests.fakes.sleeper")
    supervisor.keep_running(server)
    supervisor.keep_running(sleeper)
    first = (await until(lambda: server.server._spare))[1]

    first.kill()
    await until(lambda: server.server._spare and server.server._spare[1] is not first)
    await supervisor.stop([server, sleeper])

    await until(lambda: children._live <= before)


async def test_fork_server_that_hangs_is_replaced(small, monkeypatch, capfd):
    monkeypatch.setattr("aiplatform.cli.forks.FORK_TIMEOUT_S", 0.2)
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    supervisor.keep_running(server)
    await asyncio.wait_for(server.server.ready.wait(), 60)
    supervisor.running["forks"].send_signal(signal.SIGSTOP)

    code = await asyncio.wait_for(supervisor.run(role(server, "tests.fakes.leaver")), 60)
    await supervisor.stop([server])

    assert code == 0


async def test_restarted_role_runs_again_without_a_failure(small, capfd):
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    sleeper = role(server, "tests.fakes.sleeper")
    supervisor.keep_running(server)
    supervisor.keep_running(sleeper)
    before = await until(lambda: supervisor.running.get("role"))

    await asyncio.wait_for(supervisor.restart(sleeper), 60)
    after = supervisor.running["role"]
    await supervisor.stop([server, sleeper])

    assert before.returncode is not None
    assert after is not before
    assert supervisor.failures == {}


async def test_stop_ends_a_role_that_waits_for_a_fork_server(small, monkeypatch, capfd):
    monkeypatch.setattr(processes, "SHORTEST_S", 0.01)
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    waiting = role(server, "tests.fakes.sleeper")  # no server is started
    supervisor.keep_running(waiting)
    await asyncio.sleep(0)

    await asyncio.wait_for(supervisor.stop([waiting]), 2)

    assert supervisor.running == {}


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


async def test_fork_succeeds_while_another_server_answers_its_last_request(small, monkeypatch, capfd):
    monkeypatch.setattr("aiplatform.cli.forks.FORK_TIMEOUT_S", 5)
    supervisor, slow, quick = ProcessSupervisor(), ForkServerProcess("slow", []), ForkServerProcess("quick", [])
    for server in (slow, quick):
        supervisor.keep_running(server)
        await asyncio.wait_for(server.server.ready.wait(), 60)
    first = supervisor.running["slow"]
    first.send_signal(signal.SIGSTOP)
    waiting = asyncio.create_task(supervisor.run(role(slow, "tests.fakes.leaver", "waiting")))
    await until(forks.is_forking)

    await supervisor.run(role(quick, "tests.fakes.leaver"))
    first.send_signal(signal.SIGCONT)
    code = await asyncio.wait_for(waiting, 60)
    same = supervisor.running["slow"] is first
    await supervisor.stop([slow, quick])

    assert (code, same) == (0, True)


async def test_role_whose_request_was_cancelled_does_not_run(small, capfd):
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    supervisor.keep_running(server)
    await asyncio.wait_for(server.server.ready.wait(), 60)
    before = children_of(os.getpid())
    supervisor.running["forks"].send_signal(signal.SIGSTOP)
    cancelled = asyncio.create_task(supervisor.run(role(server, "tests.fakes.sleeper", "cancelled")))
    await until(forks.is_forking)
    kept = asyncio.create_task(supervisor.run(role(server, "tests.fakes.sleeper", "kept")))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)

    supervisor.running["forks"].send_signal(signal.SIGCONT)
    child = await until(lambda: supervisor.running.get("kept"))
    await until(lambda: command_of(child.pid).endswith("tests.fakes.sleeper"))
    new = lambda: children.reap_strays() or children_of(os.getpid()) - before  # noqa: E731 - looked at repeatedly
    await until(lambda: {pid for pid in new() if command_of(pid).endswith("tests.fakes.sleeper")} == {child.pid})
    kept.cancel()
    await supervisor.stop([server])


async def test_role_that_answered_before_its_server_ended_is_adopted(capfd):
    server = ForkServer()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    server._control = ours
    reply = server._replies[1] = asyncio.get_running_loop().create_future()
    theirs.send(b'{"id": 1, "pid": 5}')

    server.lost()

    assert reply.result() == 5
    with pytest.raises(BrokenPipeError):
        theirs.send(b'{"id": 2, "pid": 6}')
    theirs.close()


async def test_role_that_waits_for_a_discarded_server_is_forked_by_its_successor(small, capfd):
    supervisor, successor = ProcessSupervisor(), ForkServerProcess("forks2", [])
    servers = [ForkServerProcess("forks", []), successor]  # the first one never becomes ready
    waiting = ForkedProcess("role", [sys.executable, "-m", "tests.fakes.leaver"], server=lambda: servers[0].server)
    supervisor.keep_running(successor)
    run = asyncio.create_task(supervisor.run(waiting))
    await asyncio.sleep(0)

    supervisor._tasks["forks"] = asyncio.create_task(asyncio.sleep(600))  # pause: until it is cancelled
    await supervisor.discard(servers.pop(0))
    code = await asyncio.wait_for(run, 60)
    await supervisor.stop([successor])

    assert code == 0


async def test_refused_role_is_started_again_and_the_reason_is_shown(small, monkeypatch, capfd):
    monkeypatch.setenv("AIP_TEST_THREAD", "1")
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    sleeper = role(server, "tests.fakes.sleeper")
    supervisor.keep_running(server)
    supervisor.keep_running(sleeper)
    await until(lambda: supervisor.failures.get("role"))

    monkeypatch.delenv("AIP_TEST_THREAD")
    await until(lambda: supervisor.running.get("role"))
    await supervisor.stop([server, sleeper])

    assert "A fork would be unsafe: 2 threads." in capfd.readouterr().out


async def test_replaced_role_finishes_beside_its_successor_and_ends_with_the_platform(small, capfd):
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    stubborn = role(server, "tests.fakes.stubborn")
    supervisor.keep_running(server)
    supervisor.keep_running(stubborn)
    shown = ""
    while "ignores SIGTERM" not in shown:
        await asyncio.sleep(0.02)
        shown += capfd.readouterr().out
    before = supervisor.running["role"]

    await asyncio.wait_for(supervisor.replace(stubborn), 60)
    after = supervisor.running["role"]
    assert after is not before
    assert before.returncode is None

    await asyncio.wait_for(supervisor.stop([server, stubborn]), 60)
    assert before.returncode is not None
    assert after.returncode is not None
    assert supervisor.failures == {}


@pytest.mark.sockets("a listening socket that roles share")
async def test_replaced_role_is_told_to_end_when_its_successor_accepts_connections(small, capfd, tmp_path):
    supervisor, server = ProcessSupervisor(), ForkServerProcess("forks", [])
    listener = socket.create_server(("127.0.0.1", 0))
    go = tmp_path / "go"
    go.touch()
    env = {"AIP_TEST_GO": str(go)}
    server_role = role(server, "tests.fakes.late_listener", listener=listener.fileno(), env=env)
    supervisor.keep_running(server)
    supervisor.keep_running(server_role)
    await until(lambda: "role" in supervisor.running and server_role.is_ready(supervisor.running["role"].pid))
    before = supervisor.running["role"]
    go.unlink()

    replacing = asyncio.create_task(supervisor.replace(server_role))
    await until(lambda: supervisor.running.get("role") not in (None, before))
    after = supervisor.running["role"]
    shown = ""
    while f"{after.pid} has not begun to accept" not in shown:
        await asyncio.sleep(0.02)
        shown += capfd.readouterr().out
    assert not replacing.done()
    assert before.returncode is None

    go.touch()
    await asyncio.wait_for(replacing, 60)
    await asyncio.wait_for(before.wait(), 60)
    assert after.returncode is None
    await asyncio.wait_for(supervisor.stop([server, server_role]), 60)
    listener.close()


def test_forks_are_refused_beside_threads_sockets_loops_and_connections(tmp_path):
    """Asserted in a process of its own: this one has all of them."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for descriptor in range(3, 256):
                if descriptor != write:
                    try:
                        os.close(descriptor)
                    except OSError:
                        continue
            for connection in connections.all(initialized_only=True):
                connection.connection = None
            found = [fork_server.violations(-1)]
            release = threading.Event()
            thread = threading.Thread(target=release.wait)
            thread.start()
            found.append(fork_server.violations(-1))
            release.set()
            thread.join()
            while len(os.listdir("/proc/self/task")) > 1:  # the kernel's side of the thread ends a moment later
                pass
            with socket.socket(socket.AF_UNIX) as link:
                found.append(fork_server.violations(-1))
                found.append(fork_server.violations(link.fileno()))
            loop = asyncio.new_event_loop()
            found.append([line for line in fork_server.violations(-1) if "socket" not in line])
            loop.close()
            connections["default"].connection = sqlite3.connect(tmp_path / "database")
            found.append(fork_server.violations(-1))
            os.write(write, repr(found).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read().decode()
    os.waitpid(child, 0)

    clean, thread, link, own, loop, database = eval(answer)
    assert clean == []
    assert thread == ["2 threads"]
    assert [line.rpartition(" ")[2] for line in link] == ["socket"]
    assert own == []
    assert [line.rpartition(" is ")[2] for line in loop] == ["an event loop"]
    assert database == ["database connection “default” is open"]


def test_command_line_is_cut_to_its_room():
    before = Path("/proc/self/cmdline").read_bytes()
    try:
        set_title(["aiplatform", "x" * (len(before) + 100)])

        assert Path("/proc/self/cmdline").read_bytes()[: len(before)].startswith(b"aiplatform\0xxx")
        assert len(Path("/proc/self/cmdline").read_bytes()) <= len(before)
    finally:
        set_title(before.rstrip(b"\0").decode().split("\0"))
