"""SIGHUP replaces the fork server and its roles, and changes nothing where the new code does not start."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
import sys

import pytest

from aiplatform.cli import output, schema
from aiplatform.cli.runtime import Runtime
from tests.waiting import until


@pytest.fixture
async def runtime(monkeypatch, capfd):
    monkeypatch.setattr("aiplatform.cli.forks.PROGRAM", "tests.aiplatform.small_fork_server")

    async def prepared(_self, _forks):
        return ""

    monkeypatch.setattr(Runtime, "_prepare", prepared)
    monkeypatch.setattr("aiplatform.cli.runtime.HELP_COMMAND", [sys.executable, "-m", "tests.fakes.no_such_program"])
    runtime = Runtime()
    runtime.start_fork_server()
    runtime.keep_running(
        *(runtime.role(f"role{n}", [sys.executable, "-m", "tests.fakes.sleeper"], colour="36") for n in (1, 2))
    )
    await until(lambda: len(runtime.supervisor.running) == 3)
    yield runtime
    await runtime.stop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        asyncio.get_running_loop().remove_signal_handler(number)


def roles(runtime: Runtime) -> dict[str, int]:
    return {name: child.pid for name, child in runtime.supervisor.running.items() if name.startswith("role")}


async def test_sighup_replaces_the_fork_server_and_then_every_role(runtime, capfd):
    before, shown = roles(runtime), ""

    os.kill(os.getpid(), signal.SIGHUP)
    while "all roles run the new code" not in shown:
        await asyncio.sleep(0.02)
        shown += capfd.readouterr().out

    after = roles(runtime)
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert "forks2" in runtime.supervisor.running
    assert "forks" not in runtime.supervisor.running


async def test_sighup_changes_nothing_where_the_new_code_does_not_start(runtime, monkeypatch, capfd):
    before, shown = roles(runtime), ""
    monkeypatch.setattr("aiplatform.cli.forks.PROGRAM", "tests.aiplatform.no_such_program")

    os.kill(os.getpid(), signal.SIGHUP)
    while "the old code continues" not in shown:
        await asyncio.sleep(0.02)
        shown += capfd.readouterr().out

    assert roles(runtime) == before
    assert set(runtime.supervisor.running) == {"forks", *before}


async def test_stop_during_a_reload_ends_the_new_fork_server(runtime, monkeypatch, capfd):
    monkeypatch.setattr("aiplatform.cli.forks.PROGRAM", "tests.fakes.sleeper")  # never becomes ready
    os.kill(os.getpid(), signal.SIGHUP)
    await until(lambda: "forks2" in runtime.supervisor.running)

    await asyncio.wait_for(runtime.stop(), 20)

    assert runtime.supervisor.running == {}


async def test_sighup_of_a_closed_terminal_stops(runtime, monkeypatch, capfd):
    runtime._had_terminal = True

    os.kill(os.getpid(), signal.SIGHUP)
    await asyncio.wait_for(runtime.stop_requested.wait(), 10)

    assert runtime._replacement is None


async def test_sighup_before_roles_are_started_is_ignored(runtime, monkeypatch, capfd):
    monkeypatch.setattr(runtime, "processes", [])

    os.kill(os.getpid(), signal.SIGHUP)
    shown = ""
    while "send it again" not in shown:
        await asyncio.sleep(0.02)
        shown += capfd.readouterr().out

    assert runtime._replacement is None


def test_line_that_cannot_be_written_raises_nothing(monkeypatch):
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())

    output.line("up", "text")


async def test_strays_that_the_kernel_hands_over_are_reaped(runtime, capfd):
    pid = os.fork()
    if pid == 0:
        os._exit(0)

    await until(lambda: not os.path.exists(f"/proc/{pid}"))


async def test_runtime_reports_what_it_waits_for_and_what_does_not_start(runtime, capfd):
    assert runtime.waiting_for() == "waiting for the web server"
    runtime.supervisor.failures["web2"] = 5
    assert runtime.fails_to_start("web")
    assert not runtime.fails_to_start("role")


@pytest.mark.django_db
def test_pending_migrations_are_found_by_their_file_names(monkeypatch, tmp_path):
    from django.apps import apps

    assert schema.pending() == []
    config = apps.get_app_config("accounts")
    folder = tmp_path / "migrations"
    folder.mkdir()
    for name in ("0001_initial", "0099_later", "_helper"):
        (folder / f"{name}.py").touch()
    monkeypatch.setattr(config, "path", str(tmp_path))

    assert schema.pending() == ["accounts.0099_later"]


async def test_help_site_is_built_once_in_the_background_and_a_failure_is_shown(runtime, capfd):
    before = roles(runtime)

    runtime.build_help()
    await asyncio.wait_for(runtime._help, 30)

    assert "no_such_program" in capfd.readouterr().out
    assert "help" not in runtime.supervisor.running
    assert roles(runtime) == before
