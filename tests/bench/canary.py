"""A canary under load: `python -m tests.bench.canary [--callers 4]`.

A platform of its own, a service with a small detector, callers that ask it without a pause through the platform's
address. Another version gets 10 % of the requests, then 50 %, and is promoted. Printed are the requests and failures
of both versions as the platform counts them, what callers saw, and the 99th percentile before and during.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.bench.swap import CALM_S, Callers, upload


def main() -> None:
    """Serve, ask, try, promote, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=4)
    asked = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

    import django

    django.setup()
    from inference.edge.device.about import picture
    from tests.factories.models import zipped
    from tests.inference import tiny
    from tests.journeys.up import call, first_admin, running, until

    with tempfile.TemporaryDirectory(prefix="aip-bench-") as folder, running(Path(folder) / "data") as up:
        token = first_admin(up)

        def api(method: str, route: str, **body: Any) -> Any:
            return call(up.url, token, method, route, body or None)[1]

        versions = [
            upload(up.port, token, name, zipped(tiny.detector(Path(folder) / name, size), Path(folder) / f"{name}.zip"))
            for name, size in (("small", 64), ("large", 128))
        ]
        service = api("POST", "services/", name="demo", model_version=versions[0], cpus=0.5)
        route = f"services/{service['id']}/"
        until(lambda: api("GET", route)["state"] == "ready", 60, "The service")
        callers = Callers(up.port, f"/serve/{service['slug']}/predict", token, picture())
        threads = [threading.Thread(target=callers.ask) for _number in range(asked.callers)]
        for thread in threads:
            thread.start()
        time.sleep(CALM_S)
        changing = time.monotonic()
        api("POST", f"{route}trial/", model_version=versions[1], percent=10)
        until(lambda: api("GET", f"{route}trials/")[0]["ready"], 120, "What is tried")
        time.sleep(CALM_S)
        api("PATCH", f"{route}trial/", percent=50)
        time.sleep(CALM_S)
        api("POST", f"{route}promote/")
        time.sleep(CALM_S)
        callers.over.set()
        for thread in threads:
            thread.join()
        time.sleep(3)  # until the last requests are counted
        trial = api("GET", f"{route}trials/")[0]
    calm = sorted(took for at, took in callers.took if at < changing)
    busy = sorted(took for at, took in callers.took if at >= changing)
    p99 = [part[len(part) * 99 // 100] * 1000 for part in (calm, busy)]
    for name in ("tried", "beside_figures"):
        print(name, {key: trial[name][key] for key in ("requests", "failed", "p50_ms", "p99_ms")})
    print(
        f"{len(callers.took)} requests, {len(callers.failed)} failed; p99 {p99[0]:.1f} ms before, {p99[1]:.1f} ms "
        f"during: {p99[1] / p99[0]:.2f} times"
    )
    for said in callers.failed[:5]:
        print(said)


if __name__ == "__main__":
    main()
