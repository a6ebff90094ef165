"""How fast a package answers on this device: in a process of its own, one picture at a time, the network alone."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from .durable import Json
from .package import module

WARMING, MOST_RUNS, LEAST_RUNS, LONGEST_S = 3, 50, 5, 5.0


def measure(package: Path) -> int:
    """Print median and 95th percentile of a picture in ms, the runs, MiB that it took, and what ran it, as JSON."""
    sys.path.insert(0, str(package))
    import onnxruntime  # noqa: PLC0415  of the device

    threads, before = os.cpu_count() or 1, _resident_mib()
    model = module("alone").Model(package / "model", threads=threads)
    feeds = _feeds(model)
    took = _times(lambda: model.engine.run(feeds))
    found: Json = {
        "p50_ms": round(1000 * took[len(took) // 2], 3),
        "p95_ms": round(1000 * took[len(took) * 95 // 100], 3),
        "runs": len(took),
        "threads": threads,
        "provider": model.engine.provider,
        "runtime": f"onnxruntime {onnxruntime.__version__}",
    }
    if before is not None:
        found["memory_mib"] = round(max((_resident_mib() or before) - before, 0.0), 1)
    sys.stdout.write(json.dumps(found))
    return 0


def _feeds(model: Any) -> Json:
    """Numbers between 0 and 1 in the shape of one picture."""
    import numpy as np  # noqa: PLC0415  of the device

    seen, rng, feeds = model.spec.input, np.random.default_rng(0), {}
    for each in model.engine.inputs:
        shape = list(each.shape)
        if each.name == seen.name:
            shape = [1, seen.channels, seen.height, seen.width]
        feeds[each.name] = rng.random([max(size, 1) for size in shape]).astype(each.dtype)
    return feeds


def _times(run: Any) -> list[float]:
    """Seconds of each run, sorted; the first ones, which also load what is loaded late, are not counted."""
    for _ in range(WARMING):
        run()
    took: list[float] = []
    began = time.perf_counter()
    while len(took) < MOST_RUNS and (len(took) < LEAST_RUNS or time.perf_counter() - began < LONGEST_S):
        started = time.perf_counter()
        run()
        took.append(time.perf_counter() - started)
    return sorted(took)


def _resident_mib() -> float | None:
    """What this process holds in memory; None where the system does not say so."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, LookupError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
