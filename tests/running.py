"""The whole platform in real processes on a throw-away folder, for chaos runs and benches.

Its processes are forks of one fork server, as those of `up` are.

Import nothing of Django before `environment(…)` was applied: settings read the variables once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tests import migrated, ports
from tests.forking import Forked, Forks
from workers.supervisor import log_lines

HERE = Path(__file__).resolve().parents[1]
MANAGE = str(HERE / "manage.py")
NODE = "node1"
PATIENCE = 4  # bounds are written for an idle machine; a test must not fail on a busy one
_libc = ctypes.CDLL(None)


def own_ports() -> dict[str, str]:
    """Ports of this test process alone: several platforms run on one machine, and none knows of the others' leases."""
    own = ports.own()
    return {
        "AIP_SSH_PORT": "0",
        "AIP_EXEC_PORT": str(own.free()),
        "AIP_JOB_PORTS": own.jobs,
        "AIP_MEETING_PORTS": own.meetings,
    }


def printed(log: Path) -> str:
    """What a job's program printed: its log without the lines of the platform's own."""
    return printed_in(log.read_text(errors="replace"))


def printed_in(text: str) -> str:
    """The same of a log's text, as the API gives it."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if log_lines.read(line.rstrip("\n")) is None)


def free_port() -> int:
    """A TCP port of this machine that nobody listens on, and that no other test process is given."""
    return ports.own().free()


def environment(root: Path, *, gpus: int = 0) -> dict[str, str]:
    """Variables of a platform that lives in `root` alone."""
    return own_ports() | {
        "AIP_DATA_ROOT": str(root),
        "AIP_RUN_DIR": str(root / "run"),
        "AIP_BOOTSTRAP": "0",
        "AIP_NODE": NODE,
        "AIP_FAKE_GPUS": str(gpus),
        "AIP_CPU_OVERCOMMIT": "4",
        "AIP_LOG_LEVEL": "WARNING",
        "AIP_DATABASE_URL": "",
        "AIP_REDIS_URL": "",
        "DJANGO_SETTINGS_MODULE": "aiplatform.settings",
    }


class Part:
    """One process that is started again as soon as it ends."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        log: Path,
        env: dict[str, str] | None = None,
        *,
        forks: Forks | None = None,
        listener: int | None = None,
    ) -> None:
        self.name, self.argv, self.log, self.env = name, argv, log, env or {}
        self.forks, self.listener = forks, listener
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.starts = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def pid(self) -> int | None:
        process = self.process
        return process.pid if process and process.poll() is None else None

    def send(self, number: signal.Signals) -> bool:
        """Signal the process; whether there was one."""
        pid = self.pid
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False

    def stop(self) -> None:
        self._over.set()
        while self._thread.is_alive():
            self.send(signal.SIGKILL)
            self._thread.join(0.1)

    def _keep(self) -> None:
        # The thread outlives its children, so "die with the parent" (which means the thread) is right here.
        while not self._over.is_set():
            self.starts += 1
            with self.log.open("ab") as out:
                if self.forks is not None:
                    self.process = self.forks.fork(
                        self.argv, output=out.fileno(), environment=self.env, listener=self.listener
                    )
                else:
                    self.process = self._spawned(out)
            self.process.wait()
            with contextlib.suppress(ProcessLookupError):  # a server's workers go on and hold its port; jobs do not
                os.killpg(self.process.pid, signal.SIGKILL)
            self._over.wait(0.05)

    def _spawned(self, out: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv, cwd=HERE, env=os.environ | self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True, preexec_fn=lambda: _libc.prctl(1, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509 - ctypes alone
        )  # fmt: skip


class Platform:
    """Broker, scheduler, agent, Celery workers, and the web server where asked."""

    def __init__(self, root: Path, *, gpus: int = 0, web_port: int | None = None) -> None:
        from aiplatform.cli import broker, web
        from workers.core import queues

        logs = root / "log"
        logs.mkdir(parents=True, exist_ok=True)
        commands = {
            "scheduler": [sys.executable, MANAGE, "scheduler"],
            "agent": [sys.executable, MANAGE, "agent"],
            "cpu": queues.start_worker_command(NODE, range(gpus)),
            "work": queues.work_worker_command(NODE, 1),
        }
        self.root = root
        self.forks = Forks(logs / "forks.txt")
        self.listener = None if web_port is None else web.listen("127.0.0.1", web_port)
        self.parts = {"valkey": Part("valkey", broker.command() or [], logs / "valkey.txt")}
        for name, argv in commands.items():
            self.parts[name] = Part(name, argv, logs / f"{name}.txt", forks=self.forks)
        if self.listener is not None:
            self.parts["web"] = Part(
                "web", web.command("127.0.0.1", web_port or 0), logs / "web.txt", dict(web.ENVIRONMENT),
                forks=self.forks, listener=self.listener.fileno(),
            )  # fmt: skip

    def start(self) -> None:
        """Start everything and wait until the node is registered and the broker answers."""
        from aiplatform.cli import schema
        from workers.core.models import Node

        migrated.begin(self.root)
        self.parts["valkey"].start()
        schema.bring_up_to_date(lambda _line: None)
        for name, part in self.parts.items():
            if name != "valkey":
                part.start()
        wait_for(lambda: Node.objects.filter(name=NODE).exists(), 60, "the agent registered no node")

    def stop(self) -> None:
        for part in reversed(self.parts.values()):
            part.stop()
        self.forks.close()
        if self.listener is not None:
            self.listener.close()


@contextlib.contextmanager
def platform(root: Path, *, gpus: int = 0, web_port: int | None = None) -> Iterator[Platform]:
    """A running platform; `os.environ` must hold `environment(root)` and Django must be set up."""
    here = Platform(root, gpus=gpus, web_port=web_port)
    try:
        here.start()
        yield here
    finally:
        here.stop()
        end_jobs(root)


def wait_for(what, seconds: float = 60, otherwise="nothing happened", pause_s: float = 0.05):
    """Look until `what()` is true, and return what it says.

    Raises:
        TimeoutError: with `otherwise` as its text, or what that says when it is called.
    """
    deadline = time.monotonic() + seconds * PATIENCE
    while not (answer := what()):
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise() if callable(otherwise) else otherwise)
        time.sleep(pause_s)
    return answer


def apart(module: str, call: str, told: Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """`call` of `module` in a Python of its own, since settings are read once. What it says goes into `told`."""
    code = f"from pathlib import Path; import {module} as here; here.{call}"
    with told.open("wb") as out:
        return subprocess.Popen([sys.executable, "-c", code], cwd=HERE, env=env, stdout=out, stderr=out)


def ended_well(process: subprocess.Popen[bytes], told: Path, seconds: float) -> None:
    """Wait for what runs apart, and print what it said; fail with the end of that unless it ended well."""
    try:
        code: int | str = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = "no end"
        process.terminate()
    print(told.read_text())
    assert code == 0, told.read_text()[-8000:]


def processes_of(root: Path) -> dict[int, str]:
    """User processes of jobs whose run directory lies in `root`: pid → command, found by their environment."""
    mark = f"AIP_OUTPUT_DIR={root}/".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes() and (entry / "stat").read_text().rsplit(")", 1)[1][1] != "Z":
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


def end_jobs(root: Path) -> None:
    """Kill the supervisors and processes of jobs in `root`, which by design outlive the platform."""
    job_folder, output_folder = f"{root}/jobs/".encode(), f"AIP_OUTPUT_DIR={root}/".encode()

    def found() -> list[int]:
        pids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    supervises = job_folder in (entry / "cmdline").read_bytes()  # empty once it is a zombie
                    if supervises or output_folder in (entry / "environ").read_bytes():
                        pids.append(int(entry.name))
        return pids

    def all_gone() -> bool:
        pids = found()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    wait_for(all_gone, 10, lambda: f"processes {found()} of jobs in {root} do not end")
