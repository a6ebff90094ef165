"""Process supervisor of one terminal: prefixed output, restart of what ends, clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aiplatform import env
from aiplatform.cli import children, output
from aiplatform.cli.children import Child
from aiplatform.cli.forks import ForkRefused, ForkServer, ForkServerLost

REFUSED_CODE = os.EX_CONFIG
SHORTEST_S, WORKED_LONGEST_S, LONGEST_S = 0.05, 2.0, 15.0  # pauses before a restart
HEALTHY_S, WORKED_S, WELL_S = 1.0, 5.0, 10.0  # runtimes after which it has started, has worked, has worked well
LOOK_S, MAX_SILENT_CHECKS = 3.0, 5  # between checks whether it answers; how many in a row may fail
START_ATTEMPTS = 40  # before its first answer: on a busy machine a program takes long to start
LINE_BYTES = 1 << 20
RESTART_GRACE_S = 30.0
ACCEPT_S = 60.0  # how long the predecessor of a process stays if that does not accept connections
STOP_S = 2.0  # how long ending processes may take to hand over their last lines


def _module_path() -> str:
    """Let programs that are started by `python -m` find ours from whatever folder `manage.py` was called in."""
    return os.pathsep.join(filter(None, [str(env.BASE_DIR), os.environ.get("PYTHONPATH", "")]))


def pause_after(lived_s: float, before_s: float, code: int) -> float:
    """Return the pause before a process that lived for `lived_s` starts again; `before_s` was its last one.

    What ends by itself as it starts would only burn the CPU, so its pauses grow. What lived for a while did some of its
    work, and others wait for the rest of it. SIGKILL comes from outside (an operator, the kernel's out-of-memory
    killer) and says nothing about the program, which starts again at once if it had started.

    Args:
        code: exit code of the process; negative: the signal that ended it.
    """
    if has_worked(lived_s, code):
        return SHORTEST_S
    is_long = lived_s <= WORKED_S and code != -signal.SIGKILL
    return min(max(before_s * 2, 4 * SHORTEST_S), LONGEST_S if is_long else WORKED_LONGEST_S)


def has_worked(lived_s: float, code: int) -> bool:
    """Whether the end of a process is no sign of a program that cannot start."""
    return lived_s >= (HEALTHY_S if code == -signal.SIGKILL else WELL_S)


@dataclass
class Process:
    """A program to keep running.

    `stop_signal` is what a clean stop sends; after `grace_s` seconds comes SIGKILL. `orphan_signal` is what the kernel
    sends when `up` is killed, so that a new `up` can start. `answers`, if given, is called periodically in a thread;
    a program that stays silent is killed and started again.
    """

    name: str
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 1.5
    colour: str = "36"
    last: bool = False  # others depend on it: stopped when they are gone
    orphan_signal: signal.Signals = signal.SIGTERM
    answers: Callable[[], bool] | None = None
    quiet: Callable[[str], bool] = lambda _line: False

    async def start(self, descriptor: int) -> Child:
        """Start the program; `descriptor` takes its standard output and error."""
        return children.spawn(
            self.argv,
            environment=os.environ | self.environment(),
            output=descriptor,
            orphan_signal=self.orphan_signal,
        )

    def environment(self) -> dict[str, str]:
        """Variables on top of those of `up`."""
        return {"PYTHONUNBUFFERED": "1", "PYTHONPATH": _module_path()} | self.env

    def is_ready(self, _pid: int) -> bool:
        """Whether a running program can take over from its predecessor."""
        return True

    def ended(self) -> None:
        """Called after the program has ended, before it is started again."""

    def release(self) -> None:
        """Called when the program is not to be started again."""


@dataclass
class ForkServerProcess(Process):
    """The fork server itself."""

    server: ForkServer = field(default_factory=ForkServer)

    async def start(self, descriptor: int) -> Child:
        return self.server.start(os.environ | self.environment(), descriptor)

    def ended(self) -> None:
        self.server.lost()

    def release(self) -> None:
        self.server.close()


@dataclass
class ForkedProcess(Process):
    """A role that the current fork server forks.

    Args:
        server: returns the fork server; another one after an upgrade.
        listener: a listening socket that the role inherits.
    """

    server: Callable[[], ForkServer] = ForkServer
    listener: int | None = None

    async def start(self, descriptor: int) -> Child:
        while True:
            with contextlib.suppress(ForkServerLost):
                return await self.server().fork(
                    self.argv,
                    environment=self.env,
                    output=descriptor,
                    orphan_signal=self.orphan_signal,
                    listener=self.listener,
                )
            await asyncio.sleep(SHORTEST_S)

    def is_ready(self, pid: int) -> bool:
        return self.listener is None or children.accepts_from(pid, self.listener)


class ProcessSupervisor:
    """Starts processes, shows their lines, and starts them again when they end (`pause_after`)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.running: dict[str, Child] = {}
        self.failures: dict[str, int] = {}
        """How often a process has ended in a row without having worked before (`has_worked`)."""
        self.stopping = asyncio.Event()
        self.refused = asyncio.Event()  # a process said that starting it again would change nothing
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._restarting: set[str] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        """Tasks of processes that were replaced and finish their work."""

    def keep_running(self, process: Process) -> None:
        """Restart `process` whenever it ends, until `stop`."""
        self._tasks[process.name] = asyncio.create_task(self._keep_running(process))

    async def restart(self, process: Process, *, grace_s: float = RESTART_GRACE_S) -> None:
        """Stop a process cleanly and return when it runs again.

        Args:
            grace_s: how long it may finish its work; longer than when everything stops.
        """
        before = self.running.get(process.name)
        self._restarting.add(process.name)
        await self._end(before, process, grace_s)
        await self._wait_for_another(process, before)
        self._restarting.discard(process.name)

    async def replace(self, process: Process, *, grace_s: float = RESTART_GRACE_S) -> None:
        """Start a second instance of a process, stop the first one when the second is ready, and return then.

        For processes that share a listening socket: the old one may need long for its work, and serves until
        the new one accepts connections.
        """
        before = self.running.get(process.name)
        if before is None:
            await self.restart(process)
            return
        self._let_leave(self._tasks[process.name])
        self.keep_running(process)
        await self._wait_for_another(process, before)
        try:
            await asyncio.wait_for(self._wait_until_ready(process), ACCEPT_S)
        except TimeoutError:
            output.line(process.name, f"accepts no connections after {ACCEPT_S:.0f} s; see above", colour="31")
        self._let_leave(asyncio.create_task(self._end(before, process, grace_s)))

    def _let_leave(self, task: asyncio.Task[None]) -> None:
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _wait_for_another(self, process: Process, before: Child | None) -> None:
        while not self.stopping.is_set() and self.running.get(process.name) in (before, None):
            if self._tasks[process.name].done():
                return
            await asyncio.sleep(0.02)

    async def _wait_until_ready(self, process: Process) -> None:
        while not self.stopping.is_set():
            child = self.running.get(process.name)
            if child is not None and child.returncode is None and process.is_ready(child.pid):
                return
            await asyncio.sleep(0.02)

    async def discard(self, process: Process) -> None:
        """Stop a process and do not start it again."""
        process.release()
        task = self._tasks.pop(process.name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        process.ended()

    async def _keep_running(self, process: Process) -> None:
        pause_s = SHORTEST_S
        while not self.stopping.is_set():
            started = self.clock()
            try:
                code = await self.run(process)
            except (OSError, ForkRefused) as exc:
                output.line(process.name, f"cannot start: {exc}", colour="31")
                code = os.EX_OSERR
            finally:
                process.ended()
            if self.stopping.is_set() or asyncio.current_task() in self._leaving:
                return
            if process.name in self._restarting:
                self._restarting.discard(process.name)
                pause_s = SHORTEST_S
                continue
            if code == REFUSED_CODE:
                self.refused.set()
                return
            lived_s = self.clock() - started
            self.failures[process.name] = 1 if has_worked(lived_s, code) else self.failures.get(process.name, 0) + 1
            pause_s = pause_after(lived_s, pause_s, code)
            output.line(process.name, f"exited with {code}, restarts in {pause_s:.1f} s", colour="31")
            await self._pause(pause_s)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    async def run(self, process: Process) -> int:
        """Run a process once, to its end, and return its exit code; a cancelled call kills it."""
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        lines = asyncio.create_task(self._show(process, ours))
        try:
            try:
                child = await process.start(theirs)
            finally:
                os.close(theirs)
            self.running[process.name] = child
            watch = asyncio.create_task(self._watch(process, child))
            try:
                return await child.wait()
            finally:
                watch.cancel()
                if child.returncode is None:  # discarded
                    child.kill()
                # What the process itself started would go on, hold its port and keep the pipe open.
                # Jobs are not among them: a supervisor leaves the session of the process that started it.
                child.kill_group()
                if self.running.get(process.name) is child:
                    del self.running[process.name]
        finally:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(lines, 2)

    async def _watch(self, process: Process, child: Child) -> None:
        """Kill a process that runs but does not respond: its socket was removed, or it was stopped by a signal."""
        silent, limit = 0, START_ATTEMPTS
        while process.answers and silent < limit:
            await asyncio.sleep(LOOK_S)
            silent, limit = (0, MAX_SILENT_CHECKS) if await asyncio.to_thread(process.answers) else (silent + 1, limit)
        if process.answers:
            output.line(process.name, f"has not responded {silent} times in a row; it is killed", colour="31")
            child.kill_group()

    async def _show(self, process: Process, descriptor: int) -> None:
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        try:
            while True:
                try:
                    raw = await reader.readline()
                except ValueError:  # a line beyond the limit: drop what is buffered, keep the process
                    continue
                if not raw:
                    return
                text = raw.decode(errors="replace").rstrip()
                if text and not process.quiet(text):
                    output.line(process.name, text, colour=process.colour)
        finally:
            transport.close()

    async def stop(self, processes: list[Process]) -> None:
        """Stop everything at once, then what others depend on (`last`); a process that does not end is killed."""
        self.stopping.set()
        for process in processes:
            process.release()
        leaving = list(self._leaving)
        starting = [task for name, task in self._tasks.items() if name not in self.running]
        for task in (*leaving, *starting):
            task.cancel()
        for is_last in (False, True):
            await asyncio.gather(
                *(
                    self._end(self.running.get(process.name), process, process.grace_s)
                    for process in processes
                    if process.last is is_last
                )
            )
        tasks = [*leaving, *self._tasks.values()]
        if tasks:
            _ended, others = await asyncio.wait(tasks, timeout=STOP_S)
            for task in others:  # one that was just being started
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end(self, child: Child | None, process: Process, grace_s: float) -> None:
        if child is None or child.returncode is not None:
            return
        child.send_signal(process.stop_signal)
        try:
            await asyncio.wait_for(child.wait(), grace_s)
        except TimeoutError:
            child.kill_group()
            child.kill()
            await child.wait()
