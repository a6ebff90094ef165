"""What starting and idling costs: python -m tests.bench.start [--only NAME …] [--soak MINUTES] [--rounds 3].

Measured on a throw-away data folder, beside an empty Django project in the same run: first start (no database, no
bytecode), later starts, memory and CPU time of the idle platform, memory of each further GPU, restarts of killed
processes, the end on SIGTERM in each phase of a start, and a start beside 40 busy processes. `--soak` lets 60 users
call pages and the API for so many minutes and prints the memory at the beginning and at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.journeys.up import Up, call, first_admin
from tests.running import free_port

ROOT = Path(__file__).parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
IDLE_S, SETTLE_S = 60.0, 10.0
BUSY = 40
USERS, PAUSE_S = 60, 5.0  # seconds between two requests of a user, on average
KILLED = ("aiplatform.cli.web", "manage.py\0scheduler", "manage.py\0agent", "cpu@node1", "manage.py\0ports")
PAGES = ("/", "/datasets/", "/training/", "/jobs/", "/models/", "/notifications/")
ROUTES = ("me/", "datasets/", "training/jobs/", "jobs/", "models/", "services/")


class Platform(Up):
    """`up` with a bench's settings; `ready_s` is how long it took until it answered."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.begun = time.monotonic()
        super().__init__(folder, **{"AIP_PORTS_PORT": str(free_port()), "AIP_SSH_PORT": str(free_port()), **more})

    def ready(self, seconds: float = 600) -> float:
        self.wait(r"ready in \d+ s", seconds)
        return time.monotonic() - self.begun

    def pids(self) -> list[int]:
        """`up` and everything below it."""
        return [self.process.pid, *family(self.process.pid)]


def family(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *family(child)]
    return found


def pss_mib(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total / 1024


def cpu_s(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += sum(map(int, fields[11:15]))
    return total / TICKS


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def stopped(platform: Platform) -> Iterator[Platform]:
    try:
        yield platform
    finally:
        platform.stop()


def show(what: str, value: str, target: str = "") -> None:
    print(f"{what:58} {value:>22}   {target}", flush=True)


def longest(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({max(seconds):.2f})"


def empty_project(rounds: int) -> None:
    """The reference: a Django project with nothing in it, answered by one process of Django's own server."""
    with folder() as root:
        subprocess.run([sys.executable, "-m", "django", "startproject", "empty", str(root)], check=True)
        env = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
        seconds, memory = [], 0.0
        for _ in range(rounds + 1):
            port, begun = free_port(), time.monotonic()
            server = subprocess.Popen(
                [sys.executable, "manage.py", "runserver", "--noreload", str(port)], cwd=root, env=env,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            while not answers(port, "/"):
                time.sleep(0.01)
            seconds.append(time.monotonic() - begun)
            memory = pss_mib([server.pid])
            server.terminate()
            server.wait()
    show("empty Django project: later starts, median", f"{statistics.median(seconds[1:]):.2f} s")
    show("empty Django project: memory of one process (PSS)", f"{memory:.0f} MiB")


def answers(port: int, path: str, timeout: float = 2.0) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        link.request("GET", path)
        return link.getresponse().status < 500
    return False


def starts(rounds: int) -> None:
    with folder() as root, folder() as bytecode:
        cold = {"PYTHONPYCACHEPREFIX": str(bytecode)}
        with stopped(Platform(root / "data", **cold)) as platform:
            show("first start: no database, no bytecode", f"{platform.ready():.1f} s", "≤ 25 s")
        later = []
        for _ in range(rounds):
            with stopped(Platform(root / "data")) as platform:
                later.append(platform.ready())
        show("later starts: median (longest)", longest(later), "≤ 6 s")


def idle(rounds: int) -> None:
    with folder() as root:
        memory = {}
        for gpus in (0, 4):
            with stopped(Platform(root / f"data{gpus}", gpus=gpus)) as platform:
                platform.ready()
                time.sleep(SETTLE_S)
                pids = platform.pids()
                memory[gpus] = pss_mib(pids)
                if gpus:
                    continue
                before = cpu_s(pids)
                time.sleep(IDLE_S)
                used = (cpu_s(platform.pids()) - before) / IDLE_S
                show("processes of the idle platform", str(len(pids)))
                show("memory of the idle platform (PSS)", f"{memory[0]:.0f} MiB", "≤ 500 MiB")
                show("CPU of the idle platform, share of a core", f"{100 * used:.2f} %", "≤ 2 %")
        show("memory of each further GPU (4 simulated)", f"{(memory[4] - memory[0]) / 4:.1f} MiB", "≤ 15 MiB")


def restarts(rounds: int) -> None:
    with folder() as root, stopped(Platform(root / "data")) as platform:
        platform.ready()
        time.sleep(SETTLE_S)
        for word in (*KILLED, "aiplatform.cli.fork_server"):
            seconds = [back_after_kill(platform, word) for _ in range(rounds)]
            name = word.rpartition("\0")[2].rpartition(".")[2]
            show(f"{name} killed, runs again: median (longest)", longest(seconds), "≤ 0.5 s")
            time.sleep(SETTLE_S)
        seconds = []
        for _ in range(rounds):
            for pid in named(platform, "aiplatform.cli.web"):
                os.kill(pid, signal.SIGKILL)
            begun = time.monotonic()
            while not answers(platform.port, "/healthz", 10):
                pass
            seconds.append(time.monotonic() - begun)
            time.sleep(SETTLE_S)
        show("all web processes killed, answers again: median (longest)", longest(seconds), "≤ 3 s")


def named(platform: Platform, word: str) -> set[int]:
    found = set()
    for pid in platform.children():
        with contextlib.suppress(OSError):
            if word in Path(f"/proc/{pid}/cmdline").read_text():
                found.add(pid)
    return found


def back_after_kill(platform: Platform, word: str) -> float:
    before = named(platform, word)
    begun = time.monotonic()
    os.kill(min(before), signal.SIGKILL)
    while len(named(platform, word) - {min(before)}) < len(before):
        time.sleep(0.005)
    return time.monotonic() - begun


def ends(rounds: int) -> None:
    """SIGTERM at several moments of a first and of a later start."""
    with folder() as root:
        seconds = {}
        for what, data, after_s in (
            ("immediately", "new", 0.05), ("while it imports", "new", 1.0), ("while the database is made", "new", 0.0),
            ("when it is ready", "ready", 0.0),
        ):  # fmt: skip
            platform = Platform(root / data)
            if what == "while the database is made":
                shutil.rmtree(root / data / "none", ignore_errors=True)
                until_forked(platform, "manage.py\0prepare")
            elif data == "ready":
                platform.ready()
                time.sleep(1)
            else:
                time.sleep(after_s)
            begun = time.monotonic()
            platform.process.send_signal(signal.SIGTERM)
            platform.process.wait(60)
            seconds[what] = time.monotonic() - begun
            platform.stop()
    for what, value in seconds.items():
        show(f"ends after SIGTERM {what}", f"{value:.2f} s", "≤ 2 s")


def until_forked(platform: Platform, word: str) -> None:
    until = time.monotonic() + 120
    while not named(platform, word) and platform.process.poll() is None and time.monotonic() < until:
        time.sleep(0.002)


def busy(rounds: int) -> None:
    # each in a session of its own: Linux shares the cores among sessions first
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(BUSY)]
    try:
        with folder() as root, stopped(Platform(root / "data")) as platform:
            show(f"first start beside {BUSY} busy processes", f"{platform.ready(3600):.0f} s", "becomes ready")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def soak(minutes: float) -> None:
    """60 users call pages and the API; memory after one minute and at the end."""
    with folder() as root, stopped(Platform(root / "data")) as platform:
        platform.ready()
        token = first_admin(platform)
        over, asked = threading.Event(), [0] * USERS

        def user(number: int) -> None:
            chance = random.Random(number)
            while not over.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    if chance.random() < 0.5:
                        call(platform.url, token, "GET", chance.choice(ROUTES))
                    else:
                        answers(platform.port, chance.choice(PAGES), 30)
                    asked[number] += 1
                over.wait(chance.expovariate(1 / PAUSE_S))

        threads = [threading.Thread(target=user, args=(number,), daemon=True) for number in range(USERS)]
        for thread in threads:
            thread.start()
        time.sleep(60)
        rows = [pss_mib(platform.pids())]
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            time.sleep(min(60.0, max(0.1, until - time.monotonic())))
            rows.append(pss_mib(platform.pids()))
        over.set()
        show(f"{USERS} users, {minutes:g} min: requests", str(sum(asked)))
        show("memory after a minute → at the end", f"{rows[0]:.0f} → {rows[-1]:.0f} MiB", "within 10 %")
        show("memory each minute", " ".join(f"{row:.0f}" for row in rows))


PARTS: dict[str, Callable[[int], None]] = {
    "empty": empty_project,
    "starts": starts,
    "idle": idle,
    "restarts": restarts,
    "ends": ends,
    "busy": busy,
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.start", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[*PARTS], help="parts to measure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="only this: let 60 users work")
    options = parser.parse_args(argv)
    load = Path("/proc/loadavg").read_text().split()[0]
    print(f"{len(os.sched_getaffinity(0))} cores, load {load}, Python {re.split(r' ', sys.version)[0]}")
    if options.soak:
        soak(options.soak)
        return 0
    for name in options.only or PARTS:
        PARTS[name](options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
