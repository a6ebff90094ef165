"""The fork server for test platforms: the processes of one platform are forks of one that was imported once."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiplatform.cli.forks import MESSAGE_BYTES, PROGRAM, TITLE_ROOM
from aiplatform.lib import parenthood

HERE = Path(__file__).resolve().parents[1]


class Forked:
    """A process that the fork server made for us, with the parts of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._reap(os.WNOHANG)

    def wait(self) -> int:
        while (code := self._reap(0)) is None:
            pass
        return code

    def _reap(self, options: int) -> int | None:
        if options == 0 and self.returncode is None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # without the lock: `poll` must not wait for us
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, options)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Forks:
    """One fork server; another one is started when it was killed.

    Args:
        environment: of the server; None: this process's.
        kind: what stands for a forked process.
    """

    def __init__(
        self,
        log: Path,
        *,
        program: str = PROGRAM,
        environment: dict[str, str] | None = None,
        kind: type[Forked] = Forked,
    ) -> None:
        self.log, self._program, self._environment, self._kind = log, program, environment, kind
        self.process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def fork(
        self, argv: Sequence[str], *, output: int, environment: dict[str, str], listener: int | None = None
    ) -> Forked:
        """Run `argv`, a command line of this Python, in a fork that ends with this process."""
        with self._lock:
            while True:
                try:
                    return self._fork(argv, output, environment, listener)
                except (OSError, EOFError):  # it was killed
                    self.close()

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _fork(self, argv: Sequence[str], output: int, environment: dict[str, str], listener: int | None) -> Forked:
        if self._control is None:
            self._start()
        assert self._control is not None
        request = {
            "id": next(self._numbers), "argv": list(argv), "env": environment,
            "orphan_signal": int(signal.SIGKILL), "parent": os.getpid(),
        }  # fmt: skip
        before = parenthood.adopts_orphans()  # a bench may adopt supervisors
        parenthood.adopt_orphans(on=True)
        try:
            descriptors = [output] if listener is None else [output, listener]
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
            answer = self._receive()
        finally:
            parenthood.adopt_orphans(on=before)
        assert "pid" in answer, answer
        return self._kind(answer["pid"])

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self._program, str(theirs.fileno()), TITLE_ROOM], cwd=HERE,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=[theirs.fileno()], start_new_session=True,
                env=self._environment,
            )  # fmt: skip
        self._control = ours
        while "ready" not in self._receive():
            pass

    def _receive(self) -> dict[str, Any]:
        assert self._control is not None
        data = self._control.recv(MESSAGE_BYTES)
        if not data:
            raise EOFError
        return json.loads(data)
