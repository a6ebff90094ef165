"""`manage.py up` on a throw-away folder, begun again whenever it ends, and every process that belongs to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests import migrated
from tests.running import HERE, MANAGE, NODE, wait_for
from workers.supervisor import records

AGAIN_S = 0.5
EXEC_SERVER = "exec_server.py"
_libc = ctypes.CDLL(None)
#: Kind of process → words of its command line, the first that fits.
WORDS = {
    "supervisor": "workers/supervisor/__main__.py",
    "supervisor forks": "workers/supervisor/fork_server.py",
    "web": "aiplatform.cli.web",
    "scheduler": "manage.py scheduler",
    "agent": "manage.py agent",
    "cpu": f"cpu@{NODE}",
    "work": f"work@{NODE}",
    "ports": "manage.py ports",
    "ssh": "manage.py ssh_gateway",
    "forks": "aiplatform.cli.fork_server",
    "broker": "valkey-server",
    "up": "manage.py up",
}


@dataclass(frozen=True)
class Found:
    """A process of the platform. `run`: the run directory it works for, of jobs and their supervisors."""

    pid: int
    kind: str
    ticks: int
    run: Path | None = None

    def age_s(self) -> float:
        """Seconds since it began."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.ticks / os.sysconf("SC_CLK_TCK")

    def send(self, number: signal.Signals) -> bool:
        """Signal it, unless its number has gone to another process; whether there was one."""
        if records.start_ticks(self.pid) != self.ticks:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False


class Upkeep:
    """Keeps `up` running as an init system does."""

    def __init__(self, root: Path, port: int) -> None:
        self.root, self.port, self.url = root, port, f"http://127.0.0.1:{port}"
        self.said = root / "up.txt"
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="up", daemon=True)

    def start(self) -> None:
        migrated.begin(self.root)
        self._thread.start()
        wait_for(lambda: "ready in" in self.words(), 120, "up did not start", 0.2)

    def words(self) -> str:
        return self.said.read_text(errors="replace") if self.said.exists() else ""

    def stop(self) -> None:
        """End it as an operator does; whatever is left of it is killed."""
        self._over.set()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        for found in processes(self.root):
            found.send(signal.SIGKILL)
        self._thread.join(10)

    def _keep(self) -> None:
        while not self._over.is_set():
            self.starts += 1
            with self.said.open("ab") as out:
                self.process = subprocess.Popen(
                    [sys.executable, MANAGE, "up", "--port", str(self.port)], cwd=HERE, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=out, env=os.environ | {"NO_COLOR": "1"}, start_new_session=True,
                    preexec_fn=lambda: _libc.prctl(1, signal.SIGKILL, 0, 0, 0),  # noqa: PLW1509 - ctypes alone
                )  # fmt: skip
            self.process.wait()
            self._over.wait(AGAIN_S)


def processes(root: Path) -> list[Found]:
    """Every process of the platform in `root`: of jobs, of the platform, and their children."""
    data, mark = f"AIP_DATA_ROOT={root}\0".encode(), f"AIP_OUTPUT_DIR={root}/".encode()
    seen: dict[int, tuple[str, bytes, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if state[0] != "Z" and words:
                    seen[int(entry.name)] = words, (entry / "environ").read_bytes() + b"\0", int(state[1])
    found = []
    for pid, (words, environ, parent) in seen.items():
        ticks = records.start_ticks(pid)
        if ticks is None:
            continue
        run = _run_of(words, environ, root, mark)
        wraps = "bwrap" in words.partition(" ")[0]
        if mark in environ or (run and wraps):
            above = seen.get(parent, ("",))[0]
            forked = EXEC_SERVER in above and "bwrap" not in above.partition(" ")[0]  # what it forks are its acts
            serves = EXEC_SERVER in words and not forked
            kind = "sandbox" if wraps else "exec server" if serves else "job"
            found.append(Found(pid, kind, ticks, run))
        elif data in environ or str(root) in words:
            kind = next((kind for kind, word in WORDS.items() if word in words), "")
            if kind and kind not in {"supervisor", "up"} and parent in seen and WORDS[kind] in seen[parent][0]:
                kind += " child"
            if kind:
                found.append(Found(pid, kind, ticks, run))
    return found


def _run_of(words: str, environ: bytes, root: Path, mark: bytes) -> Path | None:
    """The run directory, from the environment of a job or the words of its supervisor."""
    text = environ.partition(mark)[2].partition(b"\0")[0].decode(errors="replace") if mark in environ else ""
    if not text and (jobs := f"{root}/jobs/") in words:
        text = "jobs/" + words.partition(jobs)[2].partition(" ")[0]
    parts = text.split("/")
    return root.joinpath(*parts[:3]) if len(parts) >= 3 else None
