"""Servers that come and go: `python -m tests.bench.scaling [--wakes 10] [--callers 12]`.

A platform of its own and a service with a small detector. First it sleeps and is woken by a request, again and again;
printed are the times until that request was answered, beside those of requests that found it awake. Then callers ask
without a pause until it has as many servers as it may have; printed are the seconds until each answered, requests and
failures.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import time

from tests.bench.swap import Callers, Loaded, loaded

MAX_SERVERS = 3
ASLEEP = """
from datetime import timedelta
from django.utils.timezone import now
from inference.serving.models import Service
from inference.serving.scaling import sleep
from workers.core.models import Job
service = Service.objects.select_related("job").get()
Job.objects.filter(pk=service.job_id).update(started_at=now() - timedelta(hours=1))
Service.objects.update(asked_at=None)
assert sleep.fall_asleep(Service.objects.select_related("job").get())
"""


def main() -> None:
    """Sleep, wake, grow, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wakes", type=int, default=10)
    parser.add_argument("--callers", type=int, default=12)
    asked = parser.parse_args()
    if asked.wakes:
        with loaded(0, min_replicas=0, idle_minutes=1) as site:
            wake(site, asked.wakes)
    if asked.callers:
        with loaded(asked.callers, max_replicas=MAX_SERVERS, queue_ms=10) as site:
            grow(site)


def wake(site: Loaded, count: int) -> None:
    """Let it sleep, ask, and print how long that took."""
    warm, cold = [], []
    for _number in range(count):
        warm += [one(site.callers) for _again in range(5)]
        time.sleep(3)  # until these are counted
        site.shell(ASLEEP)
        time.sleep(3)  # until its server has left
        cold.append(one(site.callers))
    cold.sort()
    print(
        f"{count} wakes: median {statistics.median(cold):.2f} s, slowest {cold[-1]:.2f} s until the answer; awake "
        f"{statistics.median(warm) * 1000:.0f} ms"
    )


def one(callers: Callers) -> float:
    """Seconds until one request on a connection of its own is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", callers.port, timeout=60)
    began = time.perf_counter()
    connection.request("POST", callers.path, callers.picture, {"Authorization": f"Bearer {callers.token}"})
    answer = connection.getresponse()
    said = answer.read()
    took = time.perf_counter() - began
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{answer.status} {said[:300]!r}")
    return took


def grow(site: Loaded) -> None:
    """Wait until it has all the servers it may have, then a while."""
    began, seen = time.monotonic(), 1
    while seen < MAX_SERVERS and time.monotonic() - began < 180:
        there = site.api("GET", "")["servers"]
        if there > seen:
            seen = there
            print(f"{seen} servers after {time.monotonic() - began:.1f} s")
        time.sleep(0.2)
    changing = time.monotonic()
    time.sleep(10)
    site.callers.over.set()
    site.report(changing)


if __name__ == "__main__":
    main()
