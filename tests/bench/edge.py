"""A fleet against one server: `python -m tests.bench.edge [--devices 200] [--rounds 6] [--kills 0]`.

The platform's own web server answers. Each simulated device enrols, then asks what it should run and reports, over a
connection of its own for each call as the agent does, eight at a time and without a pause: what is printed is how much
faster that went than a poll a minute needs, how long a poll took, and how much CPU time of the server it cost, with a
word that is new to the device and with one it knows. Then all of them fetch a package of `--mib` at once.

`--kills` N starts a real agent so many times in an update from one model to another and back, and kills it after a
random time; printed is how often it died while it worked, and that it never had half a model.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import migrated
from tests.bench.web import serving
from tests.running import environment

AT_ONCE = 8
HARDWARE = {"machine": "aarch64", "cores": 4, "memory_mib": 3800, "python": "3.11.2", "system": "Linux"}


def main() -> None:
    """Enrol, poll, fetch, kill, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--mib", type=int, default=4, help="size of the package that all fetch")
    parser.add_argument("--kills", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder:
        root = Path(folder)
        os.environ.update(environment(root) | {"DJANGO_ALLOW_ASYNC_UNSAFE": "true"})

        import django

        django.setup()
        migrated.begin(root)
        group, versions, codes = _prepare(root, asked.devices, asked.mib)
        with serving(root, workers=2) as web:
            _polls(web, group, versions[0], codes, asked.rounds)
            if asked.kills:
                _kills(root, web.port, group, versions[1:], asked.kills)


def _prepare(root: Path, count: int, mib: int) -> tuple[Any, list[Any], list[str]]:
    """A group with devices that wait for their code, and models: one of so many MiB, two small ones."""
    from inference.delivery.edge import fleet
    from tests.factories import models as factory
    from tests.factories import people
    from tests.inference import tiny

    owner = people.user("olga")
    folder = tiny.detector(root / "large")
    (folder / "labels.txt").write_bytes(random.Random(0).randbytes(mib << 20))
    from inference.registry import registration as registry

    archive = factory.zipped(folder, root / "large.zip")
    large = registry.register_upload(user=owner, archive=archive, filename=archive.name, name="large")
    small = [factory.model_version(owner, root, name=name, task=name) for name in ("tagging", "segmentation")]
    group = fleet.create(user=owner, name="Gates")
    codes = [fleet.add_device(group=group, name=f"gate-{number}", by=owner)[1] for number in range(count)]
    return group, [large, *small], codes


def _polls(web: Any, group: Any, version: Any, codes: list[str], rounds: int) -> None:
    from inference.delivery.edge import fleet

    port = web.port
    enrolled, took, _cpu = _all(web, codes, lambda code: _call(port, "enrol", {"code": code, "hardware": HARDWARE})[1])
    tokens = [json.loads(body)["token"] for body in enrolled]
    print(f"{len(tokens)} devices enrolled: {statistics.median(took) * 1000:.1f} ms each")
    tags: dict[str, str] = {}

    def poll(token: str) -> None:
        headers = {"If-None-Match": tags[token]} if token in tags else {}
        status, _body, answer = _asked(port, "GET", "word", token, headers)
        if status == 200:
            tags[token] = answer["etag"]
        _call(port, "report", {"outcome": "same", "hardware": HARDWARE, "counters": {"requests": 7}}, token)

    wanted = fleet.release(group=group, version=version, share=100, by=group.owner).wanted
    for word in ("new", *["known"] * (rounds - 1)):
        began = time.monotonic()
        _answers, took, cpu = _all(web, tokens, poll)
        spent = time.monotonic() - began
        print(
            f"a poll and a report, word {word}: p50 {statistics.median(took) * 1000:.1f} ms, "
            f"p95 {sorted(took)[len(took) * 95 // 100] * 1000:.1f} ms, {1000 * cpu / len(tokens):.1f} CPU-ms; "
            f"{60 / spent:.0f} times as fast as a poll a minute of {len(tokens)} needs"
        )
    began = time.monotonic()
    _answers, took, cpu = _all(web, tokens, lambda token: _asked(port, "GET", f"packages/{wanted.sha256}", token, {}))
    spent = time.monotonic() - began
    print(
        f"{len(tokens)} packages of {wanted.size_bytes / (1 << 20):.1f} MiB in {spent:.1f} s: "
        f"{len(tokens) * wanted.size_bytes / spent / (1 << 20):.0f} MiB/s, {cpu:.1f} CPU-s"
    )


def _all(web: Any, things: Iterable[str], act: Callable[[str], Any]) -> tuple[list[Any], list[float], float]:
    """Do it for each, eight at a time; answers, seconds of each, CPU seconds of the server."""

    def timed(thing: str) -> tuple[Any, float]:
        began = time.perf_counter()
        return act(thing), time.perf_counter() - began

    before = web.cpu_s()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pairs = list(pool.map(timed, things))
    return [answer for answer, _took in pairs], [took for _answer, took in pairs], web.cpu_s() - before


def _call(port: int, route: str, body: dict[str, Any], token: str = "") -> tuple[int, bytes]:
    status, said, _headers = _asked(port, "POST", route, token, {"Content-Type": "application/json"}, json.dumps(body))
    return status, said


def _asked(
    port: int, method: str, route: str, token: str, headers: dict[str, str], body: str | None = None
) -> tuple[int, bytes, dict[str, str]]:
    own = {**headers, **({"Authorization": f"Edge {token}"} if token else {})}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, f"/api/v1/edge/{route}", body, own)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{route}: {answer.status} {said[:200]!r}")
        return answer.status, said, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def _kills(root: Path, port: int, group: Any, versions: list[Any], count: int) -> None:
    """Kill an agent at random times while the wanted model goes to and fro."""
    from inference.delivery.edge import agent_download, fleet

    agent, home = root / agent_download.NAME, root / "device"
    agent.write_bytes(agent_download.agent())
    _device, code = fleet.add_device(group=group, name="killed", by=group.owner)
    command = [sys.executable, str(agent), "--root", str(home)]
    subprocess.run([*command, "enrol", "--server", f"http://127.0.0.1:{port}", "--code", code], check=True)
    chance, died, half, switched = random.Random(0), 0, 0, 0
    before = ""
    for number in range(count):
        group.refresh_from_db()
        fleet.release(group=group, version=versions[number % 2], share=100, by=group.owner)
        process = subprocess.Popen([*command, "run", "--once", "--port", "0"], stdout=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.1, 1.6))
        died += process.poll() is None
        process.kill()
        process.wait()
        link = home / "current"
        if link.is_symlink():
            half += not _whole(link.resolve())
            switched += link.resolve().name != before
            before = link.resolve().name
        half += sum(not _whole(place) for place in (home / "store").iterdir() if place.suffix != ".tmp")
    last = subprocess.run([*command, "run", "--once", "--port", "0"], capture_output=True, text=True, check=True)
    last = subprocess.run([*command, "run", "--once", "--port", "0"], capture_output=True, text=True, check=True)
    print(
        f"{count} starts of an agent, {died} killed at work, {switched} switches, {half} half packages; "
        f"in the end: {last.stdout.split()[2]}"
    )


def _whole(place: Path) -> bool:
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=place, capture_output=True, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    main()
