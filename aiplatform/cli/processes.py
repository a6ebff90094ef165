"""Process supervisor of one terminal: prefixed output, restart of what dies, clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from aiplatform import env
from aiplatform.cli import output
from aiplatform.lib import parenthood

REFUSED_CODE = os.EX_CONFIG
SHORTEST_S, WORKED_LONGEST_S, LONGEST_S = 0.2, 2.0, 15.0  # pauses before a restart
WORKED_S, WELL_S = 5.0, 10.0  # after such a life it had begun to work; had worked well
LOOK_S, MOST_SILENT = 3.0, 5  # between looks whether it answers; how many in a row may be in vain
FIRST_SILENT = 40  # before its first answer: on a busy machine a program takes long to begin


def _module_path() -> str:
    """Let programs that are started by `python -m` find ours from whatever folder `manage.py` was called in."""
    return os.pathsep.join(filter(None, [str(env.BASE_DIR), os.environ.get("PYTHONPATH", "")]))


async def _exit_of(child: asyncio.subprocess.Process) -> int:
    """Wait for the process itself, not for others that still hold its pipe as `wait()` does."""
    while child.returncode is None:
        await asyncio.sleep(0.05)
    return child.returncode


def pause_after(lived_s: float, before_s: float) -> float:
    """Return the pause before a process that lived for `lived_s` starts again; `before_s` was its last one.

    What dies as it starts would only burn the processor. What lived for a while did some of its work, and others wait
    for the rest of it.
    """
    if lived_s >= WELL_S:
        return SHORTEST_S
    return min(before_s * 2, WORKED_LONGEST_S if lived_s > WORKED_S else LONGEST_S)


@dataclass
class Process:
    """A program to keep running.

    `stop_signal` is what a clean stop sends; after `grace_s` seconds comes SIGKILL. `orphan_signal` is what the kernel
    sends when `up` is killed, so that a new `up` can start. Where there is `answers`, it is asked again and again, in
    a thread; what stays silent is killed and starts again.
    """

    name: str
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0
    colour: str = "36"
    last: bool = False  # others lean on it: stopped when they are gone
    orphan_signal: signal.Signals = signal.SIGTERM
    answers: Callable[[], bool] | None = None
    quiet: Callable[[str], bool] = lambda _line: False


class ProcessSupervisor:
    """Starts processes, shows their lines, starts them again with growing pauses when they end."""

    def __init__(self) -> None:
        self.running: dict[str, asyncio.subprocess.Process] = {}
        self.stopping = asyncio.Event()
        self.refused = asyncio.Event()  # a process said that starting it again would change nothing
        self._tasks: list[asyncio.Task[None]] = []

    def keep(self, process: Process) -> None:
        """Keep `process` alive until `stop`."""
        self._tasks.append(asyncio.create_task(self._keep(process)))

    async def _keep(self, process: Process) -> None:
        pause_s = SHORTEST_S
        while not self.stopping.is_set():
            started = time.monotonic()
            code = await self._run(process)
            if self.stopping.is_set():
                return
            if code == REFUSED_CODE:
                self.refused.set()
                return
            pause_s = pause_after(time.monotonic() - started, pause_s)
            output.line(process.name, f"ended with {code}, starts again in {pause_s:.1f} s", colour="31")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), pause_s)

    async def _run(self, process: Process) -> int:
        child = await asyncio.create_subprocess_exec(
            *process.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": _module_path()} | process.env,
            start_new_session=True,  # Ctrl-C reaches `up` alone, which then stops everything in order
            preexec_fn=partial(parenthood.die_with_parent, process.orphan_signal),
            limit=1 << 20,
        )
        self.running[process.name] = child
        if self.stopping.is_set():  # it came too late for `stop`, which found nothing to end
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        shown = asyncio.create_task(self._show(process, child))
        watched = asyncio.create_task(self._watch(process, child))
        try:
            return await _exit_of(child)
        finally:
            watched.cancel()
            # Its own children (a server's workers) would go on, hold the port and keep the pipe open.
            # Jobs are not among them: a supervisor leaves the session of whoever started it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(shown, 2)
            self.running.pop(process.name, None)

    async def _watch(self, process: Process, child: asyncio.subprocess.Process) -> None:
        """Kill what runs and answers nobody: its socket was removed, or it was stopped and nobody lets it go on."""
        silent, most = 0, FIRST_SILENT
        while process.answers and silent < most:
            await asyncio.sleep(LOOK_S)
            silent, most = (0, MOST_SILENT) if await asyncio.to_thread(process.answers) else (silent + 1, most)
        if process.answers:
            output.line(process.name, f"has not answered {silent} times in a row; it is killed", colour="31")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    async def _show(self, process: Process, child: asyncio.subprocess.Process) -> None:
        assert child.stdout is not None
        while True:
            try:
                raw = await child.stdout.readline()
            except ValueError:  # a line beyond the limit: drop what is buffered, keep the process
                continue
            if not raw:
                return
            text = raw.decode(errors="replace").rstrip()
            if text and not process.quiet(text):
                output.line(process.name, text, colour=process.colour)

    async def stop(self, processes: list[Process]) -> None:
        """Stop everything at once, then what others depend on (`last`); what does not end is killed."""
        self.stopping.set()
        await asyncio.gather(*(self._end(process) for process in processes if not process.last))
        await asyncio.gather(*(self._end(process) for process in processes if process.last))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end(self, process: Process) -> None:
        child = self.running.get(process.name)
        if child is None or child.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(process.stop_signal)
        try:
            await asyncio.wait_for(_exit_of(child), process.grace_s)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await _exit_of(child)
