"""What a request costs: `python -m tests.bench.web [--people 60] [--seconds 60] [--workers N] [--only ROUTE]`.

The platform's own web server and broker on a folder of their own, with 2,000 waiting jobs, 100 datasets, 500 models,
40 trainings and 60 people. First each main page (tests/bench/pages.py). Then each route alone, by one caller: CPU time
of the web processes per request. Then everybody looks at their dashboards, which refresh every five seconds:
latencies, errors, and the memory of the web processes before and after. CPU times stay firm on a loaded machine;
latencies do not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import migrated
from tests.bench import pages
from tests.running import environment, free_port, wait_for

WAITING, TRAININGS, NODES = 2000, 40, 4
REFRESH_S = 5.0
START_S = 150  # on an idle machine, of packages without bytecode; `wait_for` allows several times that
TICKS = os.sysconf("SC_CLK_TCK")
HTMX = {"HX-Request": "true"}
#: what → (path, further headers, signed in by a token instead of a cookie)
ROUTES: dict[str, tuple[str, dict[str, str], bool]] = {
    "healthz": ("/healthz", {}, False),
    "api me": ("/api/v1/me/", {}, True),
    "api jobs": ("/api/v1/jobs/", {}, True),
    "api jobs, queued": ("/api/v1/jobs/?state=queued&limit=200", {}, True),
    "api jobs, operator": ("/api/v1/jobs/?state=queued", {}, True),
    "api queue": ("/api/v1/jobs/queue/", {}, True),
    "api trainings": ("/api/v1/training/jobs/", {}, True),
    "api datasets": ("/api/v1/datasets/", {}, True),
    "api models": ("/api/v1/models/", {}, True),
    "api services": ("/api/v1/services/", {}, True),
    "api nodes": ("/api/v1/nodes/", {}, True),
    "api notifications": ("/api/v1/me/notifications/", {}, True),
    "page overview": ("/", {}, False),
    "page datasets": ("/datasets/", {}, False),
    "page trainings": ("/training/", {}, False),
    "page queue": ("/queue/", {}, False),
    "page cluster": ("/cluster/", {}, False),
    "part overview": ("/", HTMX, False),
    "part trainings": ("/training/", HTMX, False),
    "part queue": ("/queue/", HTMX, False),
    "part cluster": ("/cluster/", HTMX, False),
}
#: What people have open: each looks at one of these, and a script of theirs asks who it is and for its jobs.
DASHBOARDS = ("part overview", "part trainings", "part queue", "part cluster", "api me", "api trainings")


@dataclass
class Person:
    """Who asks, and what they show."""

    cookie: str
    token: str

    def headers(self, by_token: bool) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if by_token else {"Cookie": f"sessionid={self.cookie}"}


def prepare(count: int) -> list[Person]:
    """Make the rows and return the people, the first of them an operator; Django must be set up."""
    from django.test import Client
    from django.utils.timezone import now

    from accounts.access.permissions import SYSTEM_ADMIN
    from accounts.services import tokens
    from tests.factories import datasets, people, training, work
    from workers.core.models import Job, VirtualCluster

    cluster = VirtualCluster.objects.get_or_create(name="default")[0]
    users = [people.user(f"person{number}", cluster=cluster) for number in range(count)]
    for number in range(NODES):
        work.node(f"machine{number}", gpus=4, cores=16)
    moment = now()
    Job.objects.bulk_create(
        Job(
            owner=users[number % count], cluster=cluster, name=f"job{number}", kind="command", state="queued",
            gpus_per_node=1, queued_at=moment, position=number + 1, wait_code="no_room", wait_args={},
        )
        for number in range(WAITING)
    )  # fmt: skip
    first = datasets.version(datasets.dataset(users[0], "crossings", visibility="public"))
    for number in range(TRAININGS):
        state = "running" if number % 4 == 0 else "succeeded"
        training.training(users[number % count], name=f"training{number}", state=state, data=first)
    made = []
    for user in [people.user("operator", role=SYSTEM_ADMIN, cluster=cluster), *users]:
        client = Client()
        client.force_login(user)
        made.append(Person(client.cookies["sessionid"].value, tokens.issue(user=user, name="bench")[1]))
    return made


@dataclass
class Web:
    """The running web server: its port and processes."""

    port: int
    pids: list[int]

    def cpu_s(self) -> float:
        """CPU seconds of all of them."""
        total = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def memory_mib(self) -> list[float]:
        """Resident memory of each web process."""
        found = []
        for pid in self.pids:
            line = next(row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS"))
            found.append(int(line.split()[1]) / 1024)
        return found


@contextlib.contextmanager
def serving(root: Path, workers: int) -> Iterator[Web]:
    """Broker and web server over `root`; web processes share a listening socket, as those of `up` do."""
    from aiplatform.cli import broker, web

    port = free_port()
    listener = web.listen("127.0.0.1", port)
    commands = {"broker": broker.command() or []} | {
        f"web{number}": web.command("127.0.0.1", port) for number in range(workers)
    }
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name, argv in commands.items():
            with (root / f"{name}.log").open("wb") as out:
                environ = os.environ | web.ENVIRONMENT | {web.LISTENER_VARIABLE: str(listener.fileno())}
                running.append(
                    subprocess.Popen(
                        argv, env=environ, stdout=out, stderr=out, start_new_session=True,
                        pass_fds=[listener.fileno()],
                    )
                )  # fmt: skip
        listener.close()
        here = Web(port, [process.pid for process in running[1:]])
        wait_for(
            lambda: ask(http.client.HTTPConnection("127.0.0.1", port), "/healthz", {}) == 200, START_S, "no web server"
        )
        time.sleep(2)
        yield here
    finally:
        for process in reversed(running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(8)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ask(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> int:
    """Status of one GET; 0 without an answer."""
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0


def alone(web: Web, people: list[Person], name: str, times: int) -> float:
    """CPU milliseconds of the web processes per request of one route."""
    person = people[0 if "operator" in name else 1]
    path, more, by_token = ROUTES[name]
    headers = person.headers(by_token) | more
    connection = http.client.HTTPConnection("127.0.0.1", web.port)
    for _ in range(5 * len(web.pids)):
        if (status := ask(connection, path, headers)) != 200:
            raise SystemExit(f"{path} answered {status}")
    before = web.cpu_s()
    for _ in range(times):
        ask(connection, path, headers)
    return 1000 * (web.cpu_s() - before) / times


@dataclass
class Seen:
    """What everybody got: seconds per answer, and what was no 200."""

    took: list[float] = field(default_factory=list)
    wrong: dict[str, int] = field(default_factory=dict)

    def quantile(self, share: float) -> float:
        ordered = sorted(self.took)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def _person(web: Web, person: Person, name: str, until: float, pause_s: float, seen: Seen) -> None:
    """One dashboard: a request, a pause, and again; connections are kept as browsers keep them."""
    path, more, by_token = ROUTES[name]
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{key}: {value}" for key, value in (person.headers(by_token) | more).items()]
    request = ("\r\n".join(lines) + "\r\n\r\n").encode()
    await asyncio.sleep(random.random() * pause_s)
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port, limit=1 << 22)
    while time.monotonic() < until:
        began = time.perf_counter()
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await _body(reader, head.lower())
            outcome = head.split(b" ", 2)[1].decode()
        except (OSError, asyncio.IncompleteReadError):
            outcome = "broken off"
            reader, writer = await asyncio.open_connection("127.0.0.1", web.port, limit=1 << 22)
        seen.took.append(time.perf_counter() - began)
        if outcome != "200":
            seen.wrong[f"{name}: {outcome}"] = seen.wrong.get(f"{name}: {outcome}", 0) + 1
        await asyncio.sleep(max(0.0, pause_s - (time.perf_counter() - began)))
    writer.close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> None:
    length = next((row for row in head.split(b"\r\n") if row.startswith(b"content-length:")), None)
    if length is not None:
        await reader.readexactly(int(length.split(b":")[1]))
        return
    while size := int((await reader.readline()).strip() or b"0", 16):
        await reader.readexactly(size + 2)
    await reader.readline()


def together(web: Web, people: list[Person], *, seconds: float, pause_s: float) -> Seen:
    """Everybody looks at a dashboard."""
    seen = Seen()

    async def run() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(
            *(
                _person(web, person, DASHBOARDS[number % len(DASHBOARDS)], until, pause_s, seen)
                for number, person in enumerate(people)
            )
        )

    asyncio.run(run())
    return seen


def measure(options: argparse.Namespace, root: Path) -> dict[str, Any]:
    """Everything, as figures."""
    import django

    django.setup()
    from django.core.management import call_command

    from aiplatform.cli import web as server

    migrated.take(root / "aiplatform.sqlite3")
    call_command("migrate", verbosity=0)
    people = prepare(options.people)
    if not options.only:
        from accounts.models import User

        operator = User.objects.get(username="operator")
        owners = list(User.objects.exclude(pk=operator.pk))
        addresses = pages.seed(operator, owners, root / "seed")
    count = options.workers or server.workers()
    figures: dict[str, Any] = {"workers": count, "cpu_ms": {}}
    with serving(root, count) as web:
        if not options.only:
            figures["pages"] = measure_pages(web, people[0], addresses, options.page_times)
        for name in [options.only] if options.only else ROUTES:
            figures["cpu_ms"][name] = round(alone(web, people, name, options.times), 1)
            print(f"{name:18} {figures['cpu_ms'][name]:7.1f} CPU-ms", flush=True)
        if options.seconds:
            before, used, load = web.memory_mib(), web.cpu_s(), os.getloadavg()[0]
            seen = together(web, people[1:], seconds=options.seconds, pause_s=options.pause)
            used = web.cpu_s() - used
            figures |= {
                "p50_ms": round(seen.quantile(0.5)), "p95_ms": round(seen.quantile(0.95)), "requests": len(seen.took),
                "errors": seen.wrong, "cores": round(used / options.seconds, 2), "load": load,
                "memory_before_mib": [round(size) for size in before],
                "memory_after_mib": [round(size) for size in web.memory_mib()],
            }  # fmt: skip
            print(
                f"{options.people} people, {options.seconds:.0f} s, {count} web processes, load before {load:.1f}: "
                f"p50 {figures['p50_ms']} ms, p95 {figures['p95_ms']} ms, {len(seen.took)} requests, "
                f"errors {sum(seen.wrong.values())} {seen.wrong or ''}\n"
                f"{figures['cores']} cores in use; memory of the web processes {figures['memory_before_mib']} → "
                f"{figures['memory_after_mib']} MiB"
            )
    return figures


def measure_pages(web: Web, person: Person, addresses: dict[str, str], times: int) -> dict[str, Any]:
    """Print a table of all main pages and return its figures."""
    from dataclasses import asdict

    load = os.getloadavg()[0]
    figures = pages.on_server(person.cookie, addresses, times)
    cookie = {"name": "sessionid", "value": person.cookie}
    for name, requests, size, paint, shift in pages.in_browser(f"http://127.0.0.1:{web.port}", cookie, addresses):
        it = figures[name]
        it.requests, it.line_bytes, it.paint_ms, it.shift = requests, size, paint, shift
    print(pages.table(figures))
    over = sum(one.cpu_ms > pages.CPU_TARGET_MS for one in figures.values())
    print(
        f"{len(figures)} pages, {over} above {pages.CPU_TARGET_MS} CPU-ms; load {load:.1f} → {os.getloadavg()[0]:.1f}"
    )
    return {name: asdict(one) for name, one in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=60.0, help="of everybody together; 0: none")
    parser.add_argument("--pause", type=float, default=REFRESH_S, help="seconds between requests of one person")
    parser.add_argument("--times", type=int, default=60, help="requests of each route alone")
    parser.add_argument("--page-times", type=int, default=15, help="requests of each page in this process")
    parser.add_argument("--workers", type=int, default=0, help="web processes; 0: as many as by default")
    parser.add_argument("--only", default="", choices=["", *ROUTES], help="one route alone")
    parser.add_argument("--json", action="store_true", help="figures as JSON at the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aip-web-") as folder:
        os.environ |= environment(Path(folder)) | {"AIP_LOG_LEVEL": "ERROR"}
        figures = measure(options, Path(folder))
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
