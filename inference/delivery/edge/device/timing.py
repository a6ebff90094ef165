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

WARMING, MAX_RUNS, MIN_RUNS, LONGEST_S = 3, 50, 5, 5.0


def measure(package: Path) -> int:
    """Print as JSON the median and 95th percentile in ms, the runs, the memory in MiB and the runtime."""
    sys.path.insert(0, str(package))
    import onnxruntime  # noqa: PLC0415  of the device

    threads, before = os.cpu_count() or 1, _resident_mib()
    model = module("alone").Model(package / "model", threads=threads)
    feeds = _feeds(model)
    times = _times(lambda: model.engine.run(feeds))
    result: Json = {
        "p50_ms": round(1000 * times[len(times) // 2], 3),
        "p95_ms": round(1000 * times[len(times) * 95 // 100], 3),
        "runs": len(times),
        "threads": threads,
        "provider": model.engine.provider,
        "runtime": f"onnxruntime {onnxruntime.__version__}",
    }
    if before is not None:
        result["memory_mib"] = round(max((_resident_mib() or before) - before, 0.0), 1)
    sys.stdout.write(json.dumps(result))
    return 0


def _feeds(model: Any) -> Json:
    """Return random numbers between 0 and 1 in the shape of one image."""
    import numpy as np  # noqa: PLC0415  of the device

    image_input, rng, feeds = model.spec.input, np.random.default_rng(0), {}
    for model_input in model.engine.inputs:
        shape = list(model_input.shape)
        if model_input.name == image_input.name:
            shape = [1, image_input.channels, image_input.height, image_input.width]
        feeds[model_input.name] = rng.random([max(size, 1) for size in shape]).astype(model_input.dtype)
    return feeds


def _times(run: Any) -> list[float]:
    """Seconds of each run, sorted; the first ones, which also load what is loaded late, are not counted."""
    for _ in range(WARMING):
        run()
    took: list[float] = []
    began = time.perf_counter()
    while len(took) < MAX_RUNS and (len(took) < MIN_RUNS or time.perf_counter() - began < LONGEST_S):
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
