"""Processes of checks: each check runs in a fork of its own, which is killed when its time is over.

Neither CUDA nor NVML can be used on both sides of a fork, so the process that forks uses neither.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiplatform.lib import parenthood

OUTPUT, RESULT = "output.txt", "result.json"
OUTPUT_BYTES = 4000  # the end of the output that a report shows


@dataclass(frozen=True)
class Outcome:
    """What came of a function in a child: its JSON-ready `value`, or `error` in words. `output`: the end of it."""

    value: Any
    error: str
    output: str
    seconds: float


def run(function: Callable[[], Any], folder: Path, limit_s: float) -> Outcome:
    """Run a function in a forked process group; whatever it started in its run directories is ended afterwards.

    Args:
        folder: its own; made here and removed afterwards.
        limit_s: after which it is killed.
    """
    folder.mkdir(parents=True, mode=0o755)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_child(function, folder)
    try:
        error = _wait(pid, began + limit_s, limit_s)
    finally:
        _end_group(pid)
        _end_jobs(folder)
    seconds = time.monotonic() - began
    output = _end_of(folder / OUTPUT)
    answer: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        answer = json.loads((folder / RESULT).read_text())
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(answer.get("value"), error or answer.get("error", "") or _lost(answer), output, round(seconds, 2))


def _lost(answer: dict[str, Any]) -> str:
    return "" if "value" in answer else "The check process returned no result."


def _be_child(function: Callable[[], Any], folder: Path) -> None:
    """Run the function and end; never returns."""
    code = 1
    try:
        os.setsid()
        parenthood.die_with_parent(signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        _open_output(folder / OUTPUT)
        _inherited = _forget_connections()  # held until the end: closing them would disturb the parent
        try:
            answer = {"value": function()}
        except Exception as exc:  # noqa: BLE001 - the report shows it
            traceback.print_exc()
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        part = folder / f".{RESULT}"
        part.write_text(json.dumps(answer))
        part.replace(folder / RESULT)
        code = 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _open_output(path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115 - of the process
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 - of the process


def _forget_connections() -> list[Any]:
    """Let the child open database connections of its own; returns the parent's, which must not be closed here."""
    from django.db import connections

    pids = []
    for connection in connections.all(initialized_only=True):
        pids.append(connection.connection)
        connection.connection = None
    return pids


def _wait(pid: int, deadline: float, limit_s: float) -> str:
    """Wait for the child; what is wrong with its end, "" where nothing is."""
    ended = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return f"The check was stopped at its limit of {limit_s:.0f} s."
    finally:
        os.close(ended)
    status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if status is not None and status.si_code != os.CLD_EXITED:
        return f"The check process was terminated by {signal.Signals(status.si_status).name}."
    return ""


def _end_group(pid: int) -> None:
    """Kill the child and what it started in its group, and collect it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # it may not lead its group yet
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _end_jobs(folder: Path) -> None:
    """End the jobs that the check started: they lead sessions of their own. An MPS daemon among them."""
    from workers.execution import measurement_jobs
    from workers.execution.mps.daemon import Daemon, Unavailable

    measurement_jobs.end_all(folder)
    daemon = Daemon(measurement_jobs.OWNER)
    if daemon.has_folders():
        with contextlib.suppress(Unavailable), daemon.locked():
            daemon.end()


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - OUTPUT_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
