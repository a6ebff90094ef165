"""`up` restarts what dies and stops what does not want to."""

import asyncio
import itertools
import signal
import sys
from pathlib import Path

import pytest

from aiplatform.cli import processes
from aiplatform.cli.processes import Process, ProcessSupervisor


def python(name: str, code: str, **more) -> Process:
    return Process(name, [sys.executable, "-c", code], **more)


async def until(condition, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def test_process_supervisor_restarts_what_dies(capfd):
    supervisor, process = ProcessSupervisor(), python("web", "print('hello', flush=True); raise SystemExit(3)")
    shown = ""

    supervisor.keep_running(process)
    async with asyncio.timeout(60):
        while shown.count("hello") < 2:
            await asyncio.sleep(0.05)
            shown += capfd.readouterr().out
    await supervisor.stop([process])

    assert "web        │ exited with 3, restarts in 0.2 s" in shown


async def test_process_supervisor_finds_our_modules_from_any_folder(tmp_path, monkeypatch, capfd):
    """As `python3 elsewhere/manage.py up` does."""
    monkeypatch.chdir(tmp_path)
    supervisor = ProcessSupervisor()
    process = Process("web", [sys.executable, "-m", "aiplatform.cli.bundle"])
    supervisor.keep_running(process)
    shown = ""
    async with asyncio.timeout(60):
        while "exited with" not in shown:
            await asyncio.sleep(0.05)
            shown += capfd.readouterr().out
    await supervisor.stop([process])

    assert "exited with 0" in shown


async def test_process_supervisor_stops_what_is_only_being_started(capfd):
    supervisor, process = ProcessSupervisor(), python("web", "import time; time.sleep(60)")
    supervisor.keep_running(process)
    await asyncio.sleep(0)

    async with asyncio.timeout(30):
        await supervisor.stop([process])

    assert supervisor.running == {}


async def test_process_supervisor_kills_what_ignores_the_signal(capfd):
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    supervisor, process = ProcessSupervisor(), python("web", stubborn, grace_s=0.3)
    supervisor.keep_running(process)
    await until(lambda: "web" in supervisor.running)
    child = supervisor.running["web"]
    shown = ""
    async with asyncio.timeout(60):
        while "up" not in shown:
            await asyncio.sleep(0.02)
            shown += capfd.readouterr().out

    await supervisor.stop([process])

    assert child.returncode == -signal.SIGKILL


async def test_process_supervisor_removes_what_a_killed_process_leaves_behind(tmp_path, capfd):
    told = tmp_path / "pid"
    parent = (
        "import pathlib, subprocess, time; child = subprocess.Popen(['sleep', '60']); "
        f"pathlib.Path({str(told)!r}).write_text(str(child.pid)); time.sleep(60)"
    )
    supervisor, process = ProcessSupervisor(), python("web", parent)
    supervisor.keep_running(process)
    await until(lambda: told.exists() and told.read_text())
    orphan = Path(f"/proc/{told.read_text()}/stat")

    supervisor.running["web"].kill()

    def gone() -> bool:
        try:
            return orphan.read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:  # it may go between two looks
            return True

    await until(gone)
    await supervisor.stop([process])


@pytest.mark.parametrize(
    ("answers", "silent"),
    [([False] * 39 + [True, False, False, True], 5), ([], 40)],  # it begins slowly, then is silent; it never answers
)
async def test_process_supervisor_kills_what_answers_nobody(monkeypatch, capfd, answers, silent):
    monkeypatch.setattr(processes, "LOOK_S", 0.01)
    given = iter(answers)
    said = itertools.chain(given, itertools.repeat(False))
    supervisor = ProcessSupervisor()
    process = python("web", "import time; time.sleep(60)", answers=lambda: next(said))

    supervisor.keep_running(process)
    shown = ""
    async with asyncio.timeout(60):
        while "restarts in" not in shown:
            await asyncio.sleep(0.02)
            shown += capfd.readouterr().out
    await supervisor.stop([process])

    assert list(given) == []
    assert f"has not responded {silent} times in a row" in shown
    assert f"exited with -{signal.SIGKILL}" in shown


class ScriptedSupervisor(ProcessSupervisor):
    """Processes that live and end as a test says, by a clock of its own."""

    def __init__(self, *lives: tuple[float, int]) -> None:
        self.now, self.lives, self.pauses = 0.0, list(lives), []
        super().__init__(clock=lambda: self.now)

    async def run(self, _process):
        lived_s, code = self.lives.pop(0)
        self.now += lived_s
        if not self.lives:
            self.stopping.set()
        return code

    async def _pause(self, seconds):
        self.now += seconds
        self.pauses.append(seconds)


async def pauses_after(*lives: tuple[float, int]) -> tuple[list[float], int]:
    """Pauses after all but the last of these lives, and how many failures count."""
    supervisor, process = ScriptedSupervisor(*lives, (0, 0)), python("web", "")
    await supervisor._keep_running(process)
    return supervisor.pauses, supervisor.failures["web"]


@pytest.mark.parametrize(
    ("lived_s", "code", "pauses"),
    [
        (0.2, 1, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15, 15]),
        (0.2, -signal.SIGSEGV, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15, 15]),
        (3, 1, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15, 15]),
        (6, 1, [0.2, 0.4, 0.8, 1.6, 2, 2, 2]),
        (10, 1, [0.05] * 4),
        (0.2, -signal.SIGKILL, [0.2, 0.4, 0.8, 1.6, 2, 2, 2]),
        (1.5, -signal.SIGKILL, [0.05] * 9),
    ],
)
async def test_pauses_before_restarts_grow_only_for_programs_that_cannot_start(capfd, lived_s, code, pauses):
    seen, failures = await pauses_after(*[(lived_s, code)] * len(pauses))

    assert seen == pauses
    assert failures == (1 if pauses[0] == 0.05 else len(pauses))


async def test_pause_becomes_short_again_after_a_life_that_did_some_work(capfd):
    crashes = [(0.2, 1)] * 8

    after_work, _failures = await pauses_after(*crashes, (6, 1))
    after_a_kill, _failures = await pauses_after(*crashes, (1.5, -signal.SIGKILL), (0.2, 1))

    assert after_work[-2:] == [15, 2]
    assert after_a_kill[-3:] == [15, 0.05, 0.2]


async def test_process_supervisor_starts_what_was_killed_again_at_once(capfd, monkeypatch):
    """The signal that ended a real process is known."""
    monkeypatch.setattr(processes, "HEALTHY_S", 0.0)
    supervisor, process = ProcessSupervisor(), python("web", "import time; time.sleep(60)")
    supervisor.keep_running(process)
    for _death in range(3):
        await until(lambda: "web" in supervisor.running)
        child = supervisor.running["web"]
        child.kill()
        await until(lambda child=child: supervisor.running.get("web") not in (child, None))
    await supervisor.stop([process])

    assert capfd.readouterr().out.count("exited with -9, restarts in 0.1 s") == 3
