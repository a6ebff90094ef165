"""Counters of one server process in Prometheus' text format."""

from __future__ import annotations

import os
import resource
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            total += count
            yield f'{name}_bucket{{le="{bound:g}"}} {total}'
        total += self.counts[-1]
        yield f'{name}_bucket{{le="+Inf"}} {total}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {total}"


class Metrics:
    """What the server counts; one instance per process, used from the event loop only."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = defaultdict(int)
        self.latency = Histogram(SECONDS)
        self.inference = Histogram(SECONDS)
        self.queued = Histogram(SECONDS)
        self.batches = Histogram(SIZES)
        self.started = time.time()

    def count_response(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.latency.observe(seconds)

    def ran(self, size: int, seconds: float) -> None:
        self.batches.observe(size)
        self.inference.observe(seconds)

    def waited(self, seconds: float) -> None:
        self.queued.observe(seconds)

    def text(self, *, waiting: int, ready: bool) -> str:
        """The page of /metrics. `waiting` are images in the queue."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        lines = ["# TYPE aip_requests_total counter"]
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'aip_requests_total{{route="{route}",code="{status}"}} {count}')
        for name, histogram in (
            ("aip_request_seconds", self.latency),
            ("aip_inference_seconds", self.inference),
            ("aip_queue_seconds", self.queued),
            ("aip_batch_images", self.batches),
        ):
            lines.append(f"# TYPE {name} histogram")
            lines += histogram.lines(name)
        gauges = {
            "aip_queue_images": waiting,
            "aip_ready": int(ready),
            "process_start_time_seconds": round(self.started, 3),
            "process_resident_memory_bytes": _resident_bytes(),
        }
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value}"]
        cpu = usage.ru_utime + usage.ru_stime
        lines += ["# TYPE process_cpu_seconds_total counter", f"process_cpu_seconds_total {cpu:.3f}"]
        return "\n".join(lines) + "\n"


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
