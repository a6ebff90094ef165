"""One log, many viewers: python -m tests.bench.logs [viewers] [lines per second] [seconds].

A real web server, real WebSockets over loopback, one writer that stamps each line with the clock. Every viewer
counts bytes by offset, so a lost or doubled one is seen; the delay is from writing a line to its arrival.
Writer, viewers and server share this machine. Also: how long the end of a 1 GB log takes to open.
Everything happens in a folder of its own, which is removed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import migrated
from tests.running import free_port

ROOT = Path(__file__).parents[2]
PEOPLE = 10

WRITER = """
import sys, time
path, rate, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open(path, "ab", 0) as log:
    begun, written = time.time(), 0
    while (passed := time.time() - begun) < seconds:
        due = int(passed * rate)
        if due > written:
            now = time.time()
            log.write(b"".join(b"%.6f step %07d loss=0.1234 lr=0.001\\n" % (now, n) for n in range(written, due)))
            written = due
        time.sleep(0.01)
"""


@dataclass
class Seen:
    """What one viewer got."""

    position: int = -1
    lost: int = 0
    doubled: int = 0
    frames: int = 0
    lags: list[float] = field(default_factory=list)

    def take(self, frame: dict[str, Any], now: float) -> None:
        if frame["type"] == "hello":
            self.position = frame["size"]
        elif frame["type"] == "log" and self.position >= 0:
            self.frames += 1
            self.lost += max(0, frame["offset"] - self.position)
            self.doubled += max(0, self.position - frame["offset"])
            self.position = max(self.position, frame["next_offset"])
            for line in frame["text"].splitlines()[:: max(1, frame["text"].count("\n") // 4)]:
                stamp = line.split(" ", 1)[0]
                if len(stamp) == 17:
                    self.lags.append(now - float(stamp))


def prepare(folder: Path) -> tuple[int, list[str], Path]:
    """Rows for one running job that ten operators may watch: (job, their tokens, log file)."""
    os.environ |= {"AIP_BOOTSTRAP": "0", "AIP_DATA_ROOT": str(folder), "AIP_LOG_LEVEL": "ERROR"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "aiplatform.settings"
    import django

    django.setup()
    from celery import current_app
    from django.core.management import call_command

    current_app.send_task = lambda *_args, **_kwargs: None
    migrated.begin(folder)
    call_command("migrate", verbosity=0)
    from accounts.access.permissions import SYSTEM_ADMIN
    from accounts.services import tokens
    from tests.factories import people, work
    from workers.core.models import VirtualCluster

    cluster = VirtualCluster.objects.get(name="default")
    users = [people.user(f"viewer{n}", role=SYSTEM_ADMIN, cluster=cluster) for n in range(PEOPLE)]
    job = work.job(users[0], cluster, state="running")
    log = work.run_dir(job).log
    log.write_bytes(b"begin\n")
    return job.pk, [tokens.issue(user=user, name="bench")[1] for user in users], log


def serve(port: int) -> subprocess.Popen[bytes]:
    """The web server as `up` starts it; back when it answers."""
    import urllib.request

    from aiplatform.cli import web

    server = subprocess.Popen(web.command("127.0.0.1", port), cwd=ROOT, start_new_session=True)
    while server.poll() is None:  # as long as it takes to start on a busy machine
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2).read()
        except OSError:
            time.sleep(0.2)
        else:
            return server
    raise SystemExit("the web server ended")


async def view(url: str, token: str, seen: Seen, stop: asyncio.Event) -> None:
    """Watch until told to stop."""
    import aiohttp

    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.ws_connect(url, max_msg_size=0) as line:
        ended = asyncio.create_task(stop.wait())
        while not ended.done():
            coming = asyncio.create_task(line.receive())
            await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                break
            message = coming.result()
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
            seen.take(json.loads(message.data), time.time())


async def watch(port: int, job: int, tokens: list[str], log: Path, asked: tuple[int, int, float]) -> list[Seen]:
    """All viewers on, then the writer, then everybody off."""
    viewers, rate, seconds = asked
    stop = asyncio.Event()
    seen = [Seen() for _ in range(viewers)]
    url = f"http://127.0.0.1:{port}/ws/jobs/{job}/"
    tasks = [asyncio.create_task(view(url, tokens[n % PEOPLE], one, stop)) for n, one in enumerate(seen)]
    deadline = time.monotonic() + 60
    while any(one.position < 0 for one in seen) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    writer = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(log), str(rate), str(seconds))
    await writer.wait()
    size = log.stat().st_size
    deadline = time.monotonic() + 10
    while any(one.position < size for one in seen) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    stop.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seen


def cpu_seconds(group: int) -> float:
    """CPU of all processes of a session."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == group:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(viewers: int = 500, rate: int = 1000, seconds: float = 10.0) -> list[tuple[str, str]]:
    """Rows of the table."""
    folder = Path(tempfile.mkdtemp(prefix="aip-bench-"))
    server = None
    try:
        job, tokens, log = prepare(folder)
        port = free_port()
        server = serve(port)
        before = cpu_seconds(server.pid)
        begun = time.monotonic()
        seen = asyncio.run(watch(port, job, tokens, log, (viewers, rate, seconds)))
        passed = time.monotonic() - begun
        spent = cpu_seconds(server.pid) - before
        lags = sorted(lag for one in seen for lag in one.lags)
        size = log.stat().st_size
        whole = sum(one.position == size for one in seen)
        rows = [
            ("viewers that saw everything", f"{whole} of {viewers}"),
            ("bytes lost / doubled", f"{sum(s.lost for s in seen)} / {sum(s.doubled for s in seen)}"),
            ("line written → browser, p50", f"{statistics.median(lags) * 1000:.0f} ms"),
            ("line written → browser, p95", f"{lags[int(len(lags) * 0.95)] * 1000:.0f} ms"),
            ("log", f"{size / 1e6:.1f} MB, {rate} lines/s for {seconds:.0f} s"),
            ("web process", f"{spent / passed * 100:.0f} % of a core"),
        ]
        return rows + open_tail(job)
    finally:
        if server:
            server.terminate()
            server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def open_tail(job: int) -> list[tuple[str, str]]:
    """The last 64 KiB of a 1 GB log."""
    from workers.core.models import Job
    from workers.jobs.output import logs

    row = Job.objects.get(pk=job)
    path = logs.path_of(row)
    with path.open("r+b") as log:
        log.truncate(10**9)  # a hole reads as any other bytes
        log.seek(0, os.SEEK_END)
        log.write(b"\n" + b"line at the end\n" * 8000)
    begun = time.perf_counter()
    piece = logs.piece(row, tail=logs.PIECE)
    passed = time.perf_counter() - begun
    assert piece.text.endswith("line at the end\n")
    return [("end of a 1 GB log", f"{passed * 1000:.1f} ms")]


def main() -> None:
    """Print the table."""
    given = [float(a) for a in sys.argv[1:4]] + [500, 1000, 10][len(sys.argv) - 1 :]
    for name, value in measure(int(given[0]), int(given[1]), given[2]):
        print(f"  {name:<32} {value}")


if __name__ == "__main__":
    main()
