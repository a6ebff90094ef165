"""The load of the servers of a service: read from their ports, compared with the previous reading."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from django.core.cache import cache

from inference.serving import endpoints as serving
from inference.serving import requests
from inference.serving.scaling.rule import Counts, LoadSample, between
from workers.access.proxy import endpoints
from workers.core.models import Job

REMEMBERED_S = 600
LINE = re.compile(
    r"^(aip_queue_seconds_bucket|aip_inference_seconds_sum|aip_requests_total)(\{[^}]*\})? (\S+)$", re.MULTILINE
)


def measure(jobs: Iterable[Job]) -> LoadSample | None:
    """Return the load of servers since the last call; None at the first call, or if none reports."""
    pairs = []
    for job in jobs:
        now = fetch_counts(job)
        if now is None:
            continue
        name = f"scaling:{job.pk}:{job.attempt_number}"
        before: Any = cache.get(name)
        cache.set(name, [now.at, list(now.queued), now.running_s, now.refused], REMEMBERED_S)
        if before is not None:
            pairs.append((Counts(*before), now))
    return between(pairs)


def fetch_counts(job: Job) -> Counts | None:
    """Return the counts of a server; None if it does not respond within 0.7 s."""
    address = endpoints.endpoint(job)
    if address is None:
        return None
    headers = {serving.KEY_HEADER: serving.key_for(job.pk, job.attempt_number)}
    try:
        with requests.connected(address, longest_s=requests.PROBE_S) as connection:
            status, body = requests.send(connection, "GET", "/metrics", headers, max_bytes=1 << 20)
            return read(body.decode(), time.time()) if status == 200 else None
    except requests.FAILURES:
        return None


def read(text: str, at: float) -> Counts:
    """Read the page of /metrics.

    Raises:
        ValueError: a number is none.
    """
    summed, running_s, refused = [0], 0.0, 0
    for name, labels, value in LINE.findall(text):
        if name == "aip_queue_seconds_bucket":
            summed.append(int(value))
        elif name == "aip_inference_seconds_sum":
            running_s = float(value)
        elif 'code="429"' in labels:
            refused += int(value)
    queued = [after - before for before, after in pairwise(summed)]
    return Counts(at, queued, running_s, refused)
