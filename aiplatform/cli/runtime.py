"""What `up` and `join` have in common: a fork server, roles forked from it, and their replacement after an upgrade."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import dataclass, field

from aiplatform import env
from aiplatform.cli import children, forks, output
from aiplatform.cli.processes import ForkedProcess, ForkServerProcess, Process, ProcessSupervisor

MANAGE = str(env.BASE_DIR / "manage.py")
HELP_COMMAND = [sys.executable, MANAGE, "help_site", "--background"]
FORK_SERVER = "forks"
MAX_FAILURES = 5
LINK = "/welcome/"  # how the path of the page for a first administrator starts


@dataclass
class Runtime:
    """The supervisor of this terminal, its fork server, and the processes it keeps running.

    Args:
        owns_database: whether a reload brings the database up to date; on a joined node the server does that.
    """

    owns_database: bool = True

    supervisor: ProcessSupervisor = field(default_factory=ProcessSupervisor)
    processes: list[Process] = field(default_factory=list)
    stop_requested: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._generation = 0
        self._had_terminal = output.stream().isatty()
        self._replacement: asyncio.Task[None] | None = None
        self._help: asyncio.Task[None] | None = None
        self._forks = self._new_fork_server()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop_requested.set)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        loop.add_signal_handler(signal.SIGCHLD, self._on_child)

    def keep_running(self, *processes: Process) -> None:
        """Start processes and keep them running."""
        for process in processes:
            self.processes.append(process)
            self.supervisor.keep_running(process)

    def start_fork_server(self) -> None:
        self.supervisor.keep_running(self._forks)

    def waiting_for(self) -> str:
        """What is not there yet, in words for a progress line."""
        if not self._forks.server.ready.is_set():
            return f"loading the program ({self._forks.server.stage})"
        absent = [process.name for process in self.processes if process.name not in self.supervisor.running]
        if absent:
            return f"starting {', '.join(absent)}"
        return "waiting for the web server" if len(self.processes) > 1 else "preparing the database"

    def fails_to_start(self, name: str) -> bool:
        """Whether processes of this name (web1, web2, …) have ended `MAX_FAILURES` times in a row."""
        failures = self.supervisor.failures.items()
        return any(count >= MAX_FAILURES for process, count in failures if process.rstrip("0123456789") == name)

    def role(
        self,
        name: str,
        argv: list[str],
        *,
        colour: str,
        variables: dict[str, str] | None = None,
        listener: int | None = None,
        orphan_signal: signal.Signals = signal.SIGTERM,
    ) -> ForkedProcess:
        """Return a process that is forked from the current fork server."""
        return ForkedProcess(
            name,
            argv,
            env={"AIP_BOOTSTRAP": "0", **(variables or {})},
            colour=colour,
            listener=listener,
            orphan_signal=orphan_signal,
            server=lambda: self._forks.server,
        )

    async def prepare(self) -> str | None:
        """Bring the database up to date.

        Returns:
            Path of the page that makes the first administrator, "" if there is one; None if this failed or was stopped.
        """
        return await self._prepare(self._forks)

    async def _prepare(self, fork_server: ForkServerProcess) -> str | None:
        links: list[str] = []

        def is_link(line: str) -> bool:
            if line.startswith(LINK):
                links.append(line)
            return line.startswith(LINK)

        command = [sys.executable, MANAGE, "prepare"]
        process = ForkedProcess(
            "prepare", command, env={"AIP_BOOTSTRAP": "0"}, quiet=is_link, server=lambda: fork_server.server
        )
        work = asyncio.create_task(self.supervisor.run(process))
        stop = asyncio.create_task(self.stop_requested.wait())
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (work, stop):
            task.cancel()
        code = (await asyncio.gather(work, return_exceptions=True))[0]
        if isinstance(code, Exception):
            output.line("prepare", f"cannot start: {code}", colour="31")
        return "".join(links[-1:]) if code == 0 else None

    def build_help(self) -> None:
        """Build the help site in the background; it is served once it is ready. A failure is a line of the output."""
        process = ForkedProcess("help", HELP_COMMAND, env={"AIP_BOOTSTRAP": "0"}, server=lambda: self._forks.server)
        self._help = asyncio.create_task(self._run_once(process))

    async def _run_once(self, process: Process) -> None:
        try:
            await self.supervisor.run(process)
        except (OSError, forks.ForkRefused) as exc:
            output.line(process.name, f"cannot start: {exc}", colour="31")

    async def stop(self) -> None:
        """Stop all processes, those that others depend on last."""
        self.stop_requested.set()
        for task in (self._replacement, self._help):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self.supervisor.stop([self._forks, *self.processes])

    def _new_fork_server(self) -> ForkServerProcess:
        self._generation += 1
        name = FORK_SERVER if self._generation == 1 else f"{FORK_SERVER}{self._generation}"
        return ForkServerProcess(name, [], env={"AIP_BOOTSTRAP": "0"}, colour="90", stop_signal=signal.SIGKILL)

    def _on_hangup(self) -> None:
        """SIGHUP: after an upgrade, run the code that is on disk now."""
        if self.stop_requested.is_set():
            return
        if self._had_terminal and not output.stream().isatty():  # the kernel's signal that the terminal was closed
            self.stop_requested.set()
        elif not any(isinstance(process, ForkedProcess) for process in self.processes):
            output.line("up", "SIGHUP: ignored during the start; send it again when the platform is ready", colour="33")
        elif self._replacement is None or self._replacement.done():
            self._replacement = asyncio.create_task(self._replace())

    async def _replace(self) -> None:
        """Replace the fork server, then one role after another; if the new one cannot start, nothing changes."""
        output.line("up", "SIGHUP: loading the code on disk; roles restart one after another when it is ready")
        fresh = unused = self._new_fork_server()
        self.supervisor.keep_running(fresh)
        try:
            while not fresh.server.ready.is_set():
                if self.supervisor.failures.get(fresh.name):
                    output.line("up", "the new code does not start (see above); the old code continues", colour="31")
                    return
                await asyncio.sleep(0.05)
            if self.owns_database and await self._prepare(fresh) is None:
                if not self.stop_requested.is_set():
                    output.line("up", "the database was not migrated (see above); the old code continues", colour="31")
                return
            unused, self._forks = self._forks, fresh
        finally:
            await self.supervisor.discard(unused)
        for process in self.processes:
            if isinstance(process, ForkedProcess):
                restart = self.supervisor.restart if process.listener is None else self.supervisor.replace
                await restart(process)
        output.line("up", "all roles run the new code")
        if self.owns_database:
            self.build_help()

    def _on_child(self) -> None:
        if not forks.is_forking():
            children.reap_strays()
