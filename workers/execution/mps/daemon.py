"""One person's CUDA MPS daemon on this machine: its folders, its start, what it is asked, its end.

`nvidia-cuda-mps-control` serves the programs of one user, so there is one for each person, run as the user that the
person's jobs run as. It outlives the agent, which finds it again by what stands in `record.json`.
Commands and variables: https://docs.nvidia.com/deploy/mps/appendix-tools-and-interface-reference.html

| below `socket_paths.mps()/OWNER` | owner | content |
|---|---|---|
| pipe/ | the jobs' user | the daemon's pipes and sockets, and its process id |
| log/ | the jobs' user | control.log and server.log |
| record.json | the platform | process, boot and user of the daemon |
| lock | the platform | held by who starts, joins or ends it |
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.execution import job_users
from workers.execution.exec import socket_paths
from workers.execution.mps.programs import Program, listed
from workers.supervisor import exec_socket, records, sandbox

PROGRAM = "nvidia-cuda-mps-control"
PATH = "/usr/bin:/usr/local/bin:/bin:/usr/local/nvidia/bin:/opt/bin"
SHM = Path("/dev/shm")  # noqa: S108 - where CUDA's shared memory lies
START_S, ASK_S, END_S = 15.0, 5.0, 5.0
_PID = PROGRAM + ".pid"
_COMM = PROGRAM[:15]  # the kernel keeps so many letters
_MAX_LOG_LENGTH = 2048


class Unavailable(DomainError, code="mps_unavailable"):
    """No daemon can serve a job now. `worded` says why; the job runs without."""


def program() -> str:
    """Path of NVIDIA's control program on this machine; "" where it is not installed."""
    places = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), PATH]))
    return shutil.which(PROGRAM, path=places) or ""


def owners() -> list[int]:
    """Whose daemons have folders on this machine."""
    top = socket_paths.mps()
    names = [entry.name for entry in top.iterdir()] if top.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


@dataclass(frozen=True)
class Daemon:
    """The daemon of one person's jobs."""

    owner: int

    @property
    def home(self) -> Path:
        return socket_paths.mps() / str(self.owner)

    @property
    def pipe(self) -> Path:
        return self.home / "pipe"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def shm(self) -> Path:
        """What daemon and sandboxed jobs both have as /dev/shm: CUDA passes memory from one to the other there."""
        return SHM / f"{socket_paths.short_name('mps')}-{self.owner}" / "shm"

    @property
    def uid(self) -> int:
        """The user it runs as."""
        return os.lstat(self.pipe).st_uid

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock: no other process starts, joins or ends the daemon meanwhile.

        Raises:
            Unavailable: its folder cannot be made.
        """
        try:
            for folder in (socket_paths.mps(), self.home):
                folder.parent.mkdir(parents=True, exist_ok=True)
                exec_socket.own_folder(str(folder), 0o711)
                folder.chmod(0o711)
            lock = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as exc:
            raise Unavailable(wording.message("mps.no_folder", error=str(exc))) from exc
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def is_alive(self) -> bool:
        """Whether the daemon runs, as far as the kernel knows."""
        return records.is_alive(records.read(self.home / "record.json"))

    def was_started(self) -> bool:
        """Whether it ran since the machine was started, when this was last looked at."""
        return (records.read(self.home / "record.json") or {}).get("boot_id") == records.boot_id()

    def has_folders(self) -> bool:
        """Whether something of it is there: it runs, ran, or was about to."""
        return self.pipe.is_dir()

    def ensure(self, uid: int, cards: Sequence[str], bwrap: str) -> None:
        """Start the daemon unless it runs; only while `locked`.

        Args:
            uid: the user of the jobs; 0 is the platform's own.
            cards: unique ids of the cards that may be shared.
            bwrap: the program that gives it the jobs' /dev/shm; "": jobs here have the machine's.

        Raises:
            Unavailable: it cannot be started, or serves another user yet.
        """
        wanted = uid or os.geteuid()
        if self.is_alive() or self._rediscover():
            if self.uid != wanted:
                raise Unavailable(wording.message("mps.other_user"))
            return
        binary = program()
        if not binary:
            raise Unavailable(wording.message("mps.no_program"))
        try:
            self._make_folders(wanted, shared_memory=bool(bwrap))
            result = self._run([*self._inside(bwrap), binary, "-d"], START_S, CUDA_VISIBLE_DEVICES=",".join(cards))
        except (OSError, subprocess.SubprocessError) as exc:
            raise Unavailable(wording.message("mps.not_started", error=f"{type(exc).__name__}: {exc}"[:300])) from exc
        until = time.monotonic() + ASK_S
        while result.returncode == 0 and time.monotonic() < until:
            if self._rediscover():
                return
            time.sleep(0.05)
        raise Unavailable(wording.message("mps.not_started", error=self._why(result.stdout)))

    def send_command(self, *arguments: str) -> str | None:
        """Send a command to the daemon and return its output; None without an answer within `ASK_S`."""
        binary = program()
        if not binary or not self.pipe.is_dir():
            return None
        try:
            result = self._run([*self._user(), binary], ASK_S, stdin=" ".join(arguments))
        except (OSError, subprocess.SubprocessError):
            return None
        return result.stdout if result.returncode == 0 else None

    def programs(self) -> list[Program] | None:
        """The programs that are its clients; None where it does not say."""
        return listed(self.send_command)

    def end(self) -> None:
        """End it and what it started, and remove its folders; only while `locked`."""
        if self.is_alive():
            self.send_command("quit")
        for number, patience_s in ((0, END_S), (signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
            until = time.monotonic() + patience_s
            while (left := self._processes()) and time.monotonic() < until:
                for pid in left if number else ():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                time.sleep(0.05)
        (self.home / "record.json").unlink(missing_ok=True)
        for folder in (self.pipe, self.log, self.shm.parent):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """Take a daemon that ended by itself for ended, so that the next job has it started again."""
        (self.home / "record.json").unlink(missing_ok=True)

    def _rediscover(self) -> bool:
        """Whether its process id and an answer show that it runs; its record is written then.

        The id stands in a folder that jobs write to: it counts only for a process of that user with that name.
        """
        pid = _number_in(self.pipe / _PID)
        if pid is None or pid not in self._processes() or self.send_command("get_server_list") is None:
            return False
        ticks = records.start_ticks(pid)
        record = {"pid": pid, "start_ticks": ticks, "boot_id": records.boot_id(), "uid": self.uid}
        records.write(self.home / "record.json", record)
        return ticks is not None

    def _processes(self) -> list[int]:
        """Running daemon and servers of these folders."""
        mark = f"CUDA_MPS_PIPE_DIRECTORY={self.pipe}".encode()
        pids = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if not (entry / "comm").read_text().startswith(_COMM) or entry.stat().st_uid != self.uid:
                    continue
                if mark in (entry / "environ").read_bytes().split(b"\0") and records.start_ticks(int(entry.name)):
                    pids.append(int(entry.name))
        return pids

    def _make_folders(self, uid: int, *, shared_memory: bool) -> None:
        longest = len(os.fsencode(self.pipe / _PID))
        if longest > exec_socket.MAX_PATH_BYTES:
            raise OSError(f"{self.pipe} is longer than sockets may be. Set AIP_MPS_DIR to a shorter folder")
        if shared_memory:
            exec_socket.own_folder(str(self.shm.parent))
        for folder in (self.pipe, self.log, *([self.shm] if shared_memory else [])):
            if folder.is_dir() and os.lstat(folder).st_uid != uid:
                shutil.rmtree(folder)
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder == self.shm:
                folder.chmod(0o1777)  # nobody else enters the folder above it; users of packages write here
            if os.lstat(folder).st_uid != uid:
                os.lchown(folder, uid, uid)
        with contextlib.suppress(FileNotFoundError):
            (self.pipe / _PID).unlink()

    def _user(self) -> list[str]:
        """What makes a command run as its user, without any right of ours."""
        if os.geteuid() != 0 or self.uid == 0:
            return []
        files = [path for path in Path("/dev").glob("nvidia*") if path.is_char_device()]
        groups = job_users.groups_of(map(str, files))
        belongs = ["--groups=" + ",".join(map(str, groups))] if groups else ["--clear-groups"]
        return [*sandbox.SETPRIV, *belongs, f"--reuid={self.uid}", f"--regid={self.uid}", "--"]

    def _inside(self, bwrap: str) -> list[str]:
        """The same, with the folder it shares with jobs as /dev/shm."""
        if not bwrap:
            return self._user()
        rights = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP") if os.geteuid() == 0 else ()
        capabilities = [word for right in rights for word in ("--cap-add", right)]
        return [bwrap, "--dev-bind", "/", "/", "--bind", str(self.shm), str(SHM), *capabilities, "--", *self._user()]

    def _run(
        self, argv: list[str], limit_s: float, *, stdin: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. Processes that it leaves running keep no pipe of ours open."""
        environ = {
            "PATH": PATH,
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(self.log),
            "AIP_OUTPUT_DIR": f"{settings.DATA_ROOT}/mps",  # the mark of our processes, see agent.cards
            **more,
        }
        with tempfile.TemporaryFile("w+", errors="replace") as output, tempfile.TemporaryFile("w+") as input_file:
            input_file.write(stdin + "\n" if stdin else "")
            input_file.seek(0)
            done = subprocess.run(  # noqa: S603 - NVIDIA's program and words of ours
                argv, stdin=input_file, stdout=output, stderr=subprocess.STDOUT, env=environ, cwd="/", timeout=limit_s,
                check=False, start_new_session=True,
            )  # fmt: skip
            output.seek(0)
            return subprocess.CompletedProcess(argv, done.returncode, output.read(1 << 20))

    def _why(self, output: str) -> str:
        lines = (output + "\n" + _end_of(self.log / "control.log")).strip().splitlines()
        return lines[-1][:300] if lines else "it says nothing"


def _number_in(path: Path) -> int | None:
    word = _end_of(path).strip()
    return int(word) if word.isascii() and word.isdecimal() and len(word) < 10 else None


def _end_of(path: Path) -> str:
    """The end of a file in a folder that jobs write to: follows no link and waits for nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        file.seek(max(0, status.st_size - _MAX_LOG_LENGTH))
        return file.read(_MAX_LOG_LENGTH).decode(errors="replace")
