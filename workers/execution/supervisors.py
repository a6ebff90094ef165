"""Starting supervisors: by a warm process that forks them, and by one of their own where that cannot be asked."""

from __future__ import annotations

import atexit
import logging
import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from aiplatform import env
from workers.supervisor import __file__ as supervisor_init
from workers.supervisor import claims

log = logging.getLogger(__name__)

SUPERVISOR = Path(supervisor_init).with_name("__main__.py")
FORK_SERVER = Path(supervisor_init).with_name("fork_server.py")
START_TIMEOUT_S = 20
_ENVIRONMENT = {"PATH": "/usr/bin:/bin"} | (
    {"AIP_DATA_ROOT": str(env.DATA_ROOT)} if "AIP_DATA_ROOT" in os.environ else {}
)
"""Whose it is: the folder as the settings understood it, since a supervisor works in another one than who starts it."""
_ROOM = (
    "." * 1024
)  # as an argument: room for a run directory in the command line, which `ps` and the machine's page show


class SupervisorFailed(Exception):
    """The supervisor says itself why it could not begin."""


class NoRoom(Exception):
    """The disk is full: nothing began, ask again later."""


class NoAnswer(Exception):
    """No reply arrived in time, which means nothing: the run directory holds the facts."""


class StartRequest:
    """A request for the supervisor of a run directory; call `wait` once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._pipe = _forks.request(home)
        self._since = time.monotonic()

    @property
    def has_answered(self) -> bool:
        """Whether `wait` returns at once."""
        return self._pipe is None or bool(_readable(self._pipe, 0))

    def wait(self) -> None:
        """Wait for the answer: its command runs.

        Raises:
            NoAnswer: it may or may not have begun.
            NoRoom: the disk is full.
            SupervisorFailed: it could not begin, in words.
        """
        pipe, self._pipe = self._pipe, None
        answer = "" if pipe is None else _forks.answer(pipe, self._since + START_TIMEOUT_S)
        if not answer:
            _start_directly(self.home)
        elif answer.startswith("no room"):
            raise NoRoom(answer.partition(": ")[2])
        elif answer.startswith("failed"):
            raise SupervisorFailed(answer.partition(": ")[2])

    def close(self) -> None:
        """Give up the reply if it was not awaited; what was requested may have started."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


def start(home: Path) -> None:
    """Start the supervisor of a run directory, unless it was started before; returns once its command runs.

    Raises:
        NoAnswer, NoRoom, SupervisorFailed: see `StartRequest.wait`.
    """
    StartRequest(home).wait()


def _readable(pipe: int, seconds: float) -> bool:
    answered = select.poll()
    answered.register(pipe, select.POLLIN)
    return bool(answered.poll(1000 * max(0.0, seconds)))


def _start_directly(home: Path) -> None:
    command = [sys.executable, "-I", "-S", str(SUPERVISOR), str(home)]
    try:
        done = subprocess.run(  # noqa: S603 - our own program and a path of ours
            command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False, env=_ENVIRONMENT
        )
    except subprocess.TimeoutExpired as exc:
        raise NoAnswer from exc
    except OSError as exc:
        raise SupervisorFailed(f"{type(exc).__name__}: {exc}") from exc
    if done.returncode < 0:
        raise NoAnswer
    if done.returncode == claims.DISK_FULL_EXIT_CODE:
        raise NoRoom(done.stderr.strip())
    if done.returncode not in (0, 3):
        raise SupervisorFailed(done.stderr.strip() or f"the supervisor ended with {done.returncode}")


class ForkServer:
    """The fork server of this process: started when it is first needed, and again where it ended."""

    def __init__(self) -> None:
        self._door: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()  # the agent starts jobs in threads

    def request(self, home: Path) -> int | None:
        """Request a supervisor; return the pipe that `answer` reads, or None if the fork server cannot be reached."""
        reader, writer = os.pipe()
        try:
            socket.send_fds(self._open(), [os.fsencode(home)], [writer])
        except OSError as exc:  # it was killed: another one comes next time
            log.info("fork server away: %s", exc)
            self.close()
            os.close(reader)
            return None
        finally:
            os.close(writer)
        return reader

    def answer(self, reader: int, until: float) -> str:
        """What a supervisor says of its start; "" where it, or the fork server, ended without a word.

        Args:
            until: by the monotonic clock.

        Raises:
            NoAnswer: nothing was said in time.
        """
        try:
            if not _readable(reader, until - time.monotonic()):
                self.close()
                raise NoAnswer
            answer = os.read(reader, 4096).decode(errors="replace")
            if not answer:
                self.close()
            return answer
        finally:
            os.close(reader)

    def _open(self) -> socket.socket:
        with self._lock:
            if self._door is None or self.process is None or self.process.poll() is not None:
                self.close()
                local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with remote:
                    command = [sys.executable, "-I", "-S", str(FORK_SERVER), str(remote.fileno()), _ROOM]
                    self.process = subprocess.Popen(  # noqa: S603 - our own program
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=_ENVIRONMENT,
                        pass_fds=[remote.fileno()],
                        start_new_session=True,  # Ctrl-C is not meant for it
                        cwd="/",
                    )
                self._door = local
            return self._door

    def close(self) -> None:
        """Let go of it, so that it ends; one that hangs is killed. What it started goes on."""
        with self._lock:
            if self._door:
                self._door.close()
            if self.process:
                self.process.kill()
                self.process.wait()
            self._door = self.process = None


_forks = ForkServer()
atexit.register(_forks.close)
