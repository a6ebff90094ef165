"""Another model for a service under load: `python -m tests.bench.swap [--swaps 4] [--callers 4]`.

A platform of its own, a service with a small detector, callers that ask it without a pause through the platform's
address. First nothing changes; then the model goes to and fro. Printed are requests, failures, and the 99th
percentile of both times with their ratio.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CALM_S = 10.0


@dataclass
class Callers:
    """Threads that ask one address; what they were told, and when each was answered."""

    port: int
    path: str
    token: str
    picture: bytes
    took: list[tuple[float, float]] = field(default_factory=list)  # when, seconds
    failed: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self.over.is_set():
            began = time.perf_counter()
            try:
                connection.request("POST", self.path, self.picture, headers)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status != 200:
                    self.failed.append(f"{answer.status} {said[:200]!r}")
            except (OSError, http.client.HTTPException) as exc:
                self.failed.append(repr(exc))
                connection.close()
            self.took.append((time.monotonic(), time.perf_counter() - began))
        connection.close()


@dataclass
class Loaded:
    """A platform with a service that callers ask without a pause.

    Attributes:
        versions: ids of two versions; the service begins with the first.
        route: of the service, below /api/v1/.
        shell: runs lines of Python in the platform's own Django.
    """

    call: Callable[..., Any]
    versions: list[int]
    route: str
    callers: Callers
    shell: Callable[[str], object]

    def api(self, method: str, route: str, **body: Any) -> Any:
        return self.call(method, self.route + route, body or None)

    def report(self, changing: float) -> None:
        """Print requests, failures, and the 99th percentile of the times before and after a moment."""
        calm = sorted(took for at, took in self.callers.took if at < changing)
        busy = sorted(took for at, took in self.callers.took if at >= changing)
        p99 = [part[len(part) * 99 // 100] * 1000 for part in (calm, busy)]
        print(
            f"{len(self.callers.took)} requests, {len(self.callers.failed)} failed; p99 {p99[0]:.1f} ms while nothing "
            f"changed, {p99[1]:.1f} ms while it did: {p99[1] / p99[0]:.2f} times"
        )
        for said in self.callers.failed[:5]:
            print(said)


@contextmanager
def loaded(count: int, **limits: int) -> Iterator[Loaded]:
    """Start all of it, with so many callers; they are through when it ends.

    Args:
        limits: of the service, see `services.limits.LIMITS`.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

    import django

    django.setup()
    from inference.delivery.edge.device.about import gradient_png
    from tests.factories.models import zipped
    from tests.inference import tiny
    from tests.journeys.up import call, first_admin, running, until

    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder, running(Path(folder) / "data") as up:
        token = first_admin(up)

        def ask(method: str, route: str, body: Any = None) -> Any:
            return call(up.url, token, method, route, body)[1]

        versions = [
            upload(up.port, token, name, zipped(tiny.detector(Path(folder) / name, size), Path(folder) / f"{name}.zip"))
            for name, size in (("small", 64), ("large", 128))
        ]
        service = ask(
            "POST", "services/", {"name": "demo", "model_version": versions[0], "cpus": 0.5, "limits": limits}
        )
        route = f"services/{service['id']}/"
        until(lambda: ask("GET", route)["state"] == "ready", 60, "The endpoint")
        callers = Callers(up.port, f"/serve/{service['slug']}/predict", token, gradient_png())
        threads = [threading.Thread(target=callers.ask) for _number in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield Loaded(ask, versions, route, callers, lambda lines: run(up.environment, lines))
        finally:
            callers.over.set()
            for thread in threads:
                thread.join()


def main() -> None:
    """Serve, ask, change, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swaps", type=int, default=4)
    parser.add_argument("--callers", type=int, default=4)
    asked = parser.parse_args()
    with loaded(asked.callers) as site:
        from tests.journeys.up import until

        time.sleep(CALM_S)
        changing = time.monotonic()
        for number in range(asked.swaps):
            wanted = site.versions[(number + 1) % 2]
            began = time.monotonic()
            site.api("POST", "model/", model_version=wanted)
            until(lambda wanted=wanted: site.api("GET", "")["model_version"] == wanted, 120, "The change")
            print(f"change {number + 1}: {time.monotonic() - began:.1f} s until the other model answers")
            time.sleep(12)  # until the old server has left
            site.api("GET", "")
    site.report(changing)


def run(environment: dict[str, str], lines: str) -> None:
    """Run lines of Python in the platform's own Django."""
    given = {**environment, "DJANGO_SETTINGS_MODULE": "aiplatform.settings"}
    command = [sys.executable, str(Path(__file__).parents[2] / "manage.py"), "shell", "-v", "0", "-c", lines]
    subprocess.run(command, env=given, check=True)


def upload(port: int, token: str, name: str, archive: Path) -> int:
    """The id of a version made of an archive."""
    import json

    line = "aip-boundary"
    body = (
        (
            f'--{line}\r\nContent-Disposition: form-data; name="name"\r\n\r\n{name}\r\n--{line}\r\n'
            f'Content-Disposition: form-data; name="file"; filename="{name}.zip"\r\n\r\n'
        ).encode()
        + archive.read_bytes()
        + f"\r\n--{line}--\r\n".encode()
    )
    headers = {"Authorization": f"Bearer {token}", "Content-Type": f"multipart/form-data; boundary={line}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/v1/models/", body, headers)
    said = json.loads(connection.getresponse().read())
    connection.close()
    return int(said["id"])


if __name__ == "__main__":
    main()
