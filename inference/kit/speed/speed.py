"""Time and memory of a model: one picture at a time as services answer, and in batches as evaluations ask."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.spec import InputSpec
from inference.kit.models import composed, model_json
from training.presets.cores import Waiting

WARMING = 3
MAX_RUNS, LONGEST_S = 200, 5.0  # of each of the two
BATCH = 8
Feeds = dict[str, NDArray[np.generic]]


class Unmeasurable(Exception):
    """Nothing says how large an input is; its name."""


def measured(folder: Path, *, threads: int, longest_s: float = LONGEST_S) -> dict[str, Any]:
    """Figures of the model in a folder, with their conditions.

    `p50_ms` and `p95_ms` are of one picture at a time, `images_per_s` of batches of `batch` where the model takes
    them; `load_ms` is the time to open it, `memory_mib` what the process grew by until it had answered. `busy` is how
    many times as long its work took as it would have on free cores.

    Args:
        longest_s: of timing each of the two, once five runs are done.

    Raises:
        Unmeasurable: an input of free size without a description.
    """
    before, began = _resident_mib(), time.perf_counter()
    spec = model_json.load(folder)
    engine = composed.load(folder, spec, threads=threads)
    load_ms = 1000 * (time.perf_counter() - began)
    single = _feeds(engine, spec.input, 1)
    took, busy = _times(lambda: engine.run(single), longest_s)
    batch = BATCH if engine.batches else 1
    many = _feeds(engine, spec.input, batch)
    batches, _busy = _times(lambda: engine.run(many), longest_s) if batch > 1 else (took, busy)
    return {
        "p50_ms": round(1000 * float(np.percentile(took, 50)), 3),
        "p95_ms": round(1000 * float(np.percentile(took, 95)), 3),
        "runs": len(took),
        "images_per_s": round(batch / float(np.median(batches)), 2),
        "batch": batch,
        "load_ms": round(load_ms, 1),
        "memory_mib": round(max(_resident_mib() - before, 0.0), 1),
        "threads": threads,
        "busy": round(busy, 2),
        "provider": engine.provider,
        "processor": _processor(),
        "machine": platform.machine(),
        "onnxruntime": onnxruntime.__version__,
    }


def _times(run: Callable[[], object], longest_s: float) -> tuple[list[float], float]:
    """Seconds of each run, and how many times as long they took as on free cores."""
    for _ in range(WARMING):
        run()
    took: list[float] = []
    waiting, began = Waiting(), time.perf_counter()
    waiting.slowdown()
    while len(took) < MAX_RUNS and (len(took) < 5 or time.perf_counter() - began < longest_s):
        started = time.perf_counter()
        run()
        took.append(time.perf_counter() - started)
    return took, waiting.slowdown()


def _feeds(engine: Loaded, described: InputSpec | None, count: int) -> Feeds:
    """Numbers between 0 and 1 in the shape of the inputs."""
    rng = np.random.default_rng(0)
    feeds: Feeds = {}
    if described is not None and described.parts:
        size = (max(part.height for part in described.parts), max(part.width for part in described.parts), 3)
        pictures = [Image.fromarray(rng.integers(0, 256, size, np.uint8)) for _ in range(count)]
        return {described.name: np.stack([decode.preprocess(picture, described)[0] for picture in pictures])}
    for each in engine.inputs:
        shape = list(each.shape)
        if described is not None and each.name == described.name:
            shape = [shape[0], described.channels, described.height, described.width]
        shape[0] = count if shape[0] < 1 else shape[0]
        if any(size < 1 for size in shape):
            raise Unmeasurable(each.name)
        feeds[each.name] = rng.random(shape).astype(each.dtype)
    return feeds


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()[:100]
    return platform.machine()
