"""`manage.py up` as a person starts it, on a throw-away folder; and its processes to kill."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

from tests import migrated
from tests.running import PATIENCE, end_jobs, free_port, own_ports

ROOT = Path(__file__).parents[2]
READY_S = 240
PASSWORD = secrets.token_urlsafe(16)  # of everybody here


class Up:
    """A running platform: its address, its output, its child processes."""

    def __init__(self, folder: Path, *, gpus: int = 0, command: Sequence[str] = (), **more: str) -> None:
        self.folder = folder
        self.port, self.ports_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        self.output = folder / "up.txt"
        environment = {
            k: v
            for k, v in os.environ.items()
            if k == "AIP_SANDBOX_TIER" or (not k.startswith("AIP_") and k != "DJANGO_SETTINGS_MODULE")
        }
        environment |= own_ports() | {
            "AIP_BOOTSTRAP": "0", "AIP_DATA_ROOT": str(folder), "AIP_PORT": str(self.port),
            "AIP_PORTS_PORT": str(self.ports_port),
            "AIP_NODE": "node1",
            "AIP_FAKE_GPUS": str(gpus), "AIP_CPU_OVERCOMMIT": "4", "NO_COLOR": "1",
            **more,
        }  # fmt: skip
        self.environment = environment
        self._file = self.output.open("wb")
        self.process = subprocess.Popen(
            command or [sys.executable, str(ROOT / "manage.py"), "up"],
            stdin=subprocess.DEVNULL, stdout=self._file, stderr=self._file, env=environment, start_new_session=True,
            cwd=folder,  # nothing may depend on where it is called
        )  # fmt: skip

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait(self, pattern: str, seconds: float = READY_S) -> re.Match[str]:
        """Wait until the output matches."""
        deadline = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.said()):
                return found
            assert self.process.poll() is None, self.said()
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} did not show within {seconds} s:\n{self.said()}")

    def kill(self, word: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Signal every direct child of `up` whose command line holds `word`; how many there were."""
        killed = 0
        for pid in self.children():
            with contextlib.suppress(OSError):
                if word in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, number)
                    killed += 1
        return killed

    def children(self) -> list[int]:
        """Pids of the processes that `up` keeps running."""
        with contextlib.suppress(OSError):
            return [
                int(pid)
                for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            ]
        return []

    def commands(self) -> dict[int, str]:
        """Command lines of the processes that `up` keeps running, by pid."""
        found = {}
        for pid in self.children():
            with contextlib.suppress(OSError):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
        return found

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self._file.close()


class Browser:
    """Forms as a browser sends them: cookies and the CSRF token, nothing else."""

    def __init__(self, url: str) -> None:
        self.url, self.cookies = url, CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str) -> str:
        with self.opener.open(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def post(self, path: str, **fields: object) -> str:
        self.get(path)
        token = next(cookie.value for cookie in self.cookies if "csrf" in cookie.name)
        data = urlencode(fields | {"csrfmiddlewaretoken": token}).encode()
        request = urllib.request.Request(self.url + path, data=data, headers={"Referer": self.url + path})
        with self.opener.open(request, timeout=30) as answer:
            return answer.read().decode()


def call(url: str, token: str, method: str, route: str, body: object = None) -> tuple[int, object]:
    """One REST call: status and parsed answer, refusals included."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} if token else {}
    data = json.dumps(body).encode() if body is not None else None
    headers.setdefault("Content-Type", "application/json")
    request = urllib.request.Request(f"{url}/api/v1/{route}", data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as refusal:
        text = refusal.read()
        return refusal.code, json.loads(text) if text else None


def first_admin(up: Up) -> str:
    """Follow the one-time link like a person; return an API token of the new administrator."""
    path = up.wait(r"this one-time link creates one: http://[^/]+(/welcome/\S+)")[1]
    Browser(up.url).post(path, username="olga", password=PASSWORD, again=PASSWORD)
    status, answer = call(up.url, "", "POST", "auth/token/", {"username": "olga", "password": PASSWORD})
    assert status == 201, answer
    with contextlib.suppress(urllib.error.HTTPError):
        Browser(up.url).get(path)
        raise AssertionError("the link works a second time")
    return answer["token"]


@contextlib.contextmanager
def running(folder: Path, *, gpus: int = 0, bare: bool = False, **more: str) -> Iterator[Up]:
    """A platform that is ready. `bare`: it makes its database itself; else it begins with a copy of a migrated one."""
    if not bare:
        migrated.begin(folder)
    platform = Up(folder, gpus=gpus, **more)
    try:
        platform.wait(r"ready in \d+ s")
        yield platform
    finally:
        platform.stop()
        end_jobs(folder)


def until(look, seconds: float, what: str):
    """Repeat `look()` until it returns something true; return that."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        with contextlib.suppress(OSError):  # the web server may just have been killed
            if found := look():
                return found
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.2)
