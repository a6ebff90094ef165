"""Child processes of `up` and `join`: started by exec or by fork, waited for without polling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from aiplatform.lib import parenthood

_live: set[int] = set()
"""Processes that a `Child` will reap."""


class Child:
    """A direct child process.

    A pidfd wakes the event loop when the process ends; kernels without pidfd (before Linux 5.3) use a waiting thread.
    The process is reaped here and nowhere else, so `pid` cannot belong to another process while `returncode` is None.

    Args:
        reap: collects the exit status of the ended process and returns it as `subprocess` does (negative: signal).
    """

    def __init__(self, pid: int, reap: Callable[[], int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._reap = reap
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        _live.add(pid)
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError:
            self._pidfd = -1
            threading.Thread(target=self._wait_in_thread, name=f"wait-{pid}", daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless the process has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def kill_group(self) -> None:
        """Kill the process and what it started in its process group; jobs have left that group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        """Wait until the process itself has ended; others may still hold its pipes."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._finish(self._reap())

    def _wait_in_thread(self) -> None:
        code = self._reap()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._finish, code)

    def _finish(self, code: int) -> None:
        _live.discard(self.pid)
        self.returncode = code
        self._ended.set()


def spawn(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: int,
    orphan_signal: signal.Signals,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a program as the leader of its own session.

    Args:
        output: file descriptor for standard output and standard error; stays open here.
        orphan_signal: what the kernel sends to the program when this process ends.
    """
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C reaches `up` alone, which then stops everything in order
        preexec_fn=partial(parenthood.die_with_parent, orphan_signal),  # noqa: PLW1509 - ctypes alone
        pass_fds=tuple(pass_fds),
    )
    return Child(process.pid, process.wait)


def adopt(pid: int) -> Child:
    """Take over a process that the fork server made and that the kernel has made our child."""

    def reap() -> int:
        _pid, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    return Child(pid, reap)


def accepts_from(pid: int, listener: int) -> bool:
    """Whether an event loop of a process waits for connections to a listening socket.

    True also if it is unknown: on kernels before 4.13, which do not name the inode.

    Args:
        listener: a descriptor of the socket in this process.
    """
    inode = f"{os.fstat(listener).st_ino:x}"
    folder = Path(f"/proc/{pid}")
    try:
        for entry in (folder / "fd").iterdir():
            if str(entry.readlink()) != "anon_inode:[eventpoll]":
                continue
            for line in (folder / "fdinfo" / entry.name).read_text().splitlines():
                watched = re.match(r"tfd:.*?(?: ino:(\w+)|$)", line)
                if watched and watched[1] in (inode, None):
                    return True
    except OSError:  # a descriptor was closed meanwhile, or the process has ended
        return False
    return False


def kill_stray(pid: int) -> None:
    """Kill a child without a `Child`; `reap_strays` reaps it."""
    if pid in _strays():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def reap_strays() -> None:
    """Reap ended children without a `Child`: orphans that the kernel handed to this process."""
    for pid in _strays():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _strays() -> list[int]:
    try:
        pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:  # a kernel without this file
        return []
    return [pid for pid in map(int, pids) if pid not in _live]
