"""How much a finished model computes for an image, and how long it takes on this machine, one image at a time."""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from .cores import Waiting

WARMING, MAX_RUNS = 2, 30
MAX_DURATION_S = 0.5  # that measuring may take, beyond the first runs


def measure(model: nn.Module, file: Path, sample: Tensor) -> dict[str, Any]:
    """Measure computation and time for `sample` [1, C, H, W], with the conditions of the measurement.

    `gflops` counts multiplications and additions of convolutions and matrices by torch's own counter; `ms` is the
    median of `runs` by ONNX Runtime with `threads`, where work took `slowdown` times as long as on free cores.
    """
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(sample)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    usable = [p for p in ("CUDAExecutionProvider",) if p in onnxruntime.get_available_providers()]
    session = onnxruntime.InferenceSession(file, options, providers=[*usable, "CPUExecutionProvider"])
    inputs = {session.get_inputs()[0].name: np.ascontiguousarray(sample.numpy())}
    for _run in range(WARMING):
        session.run(None, inputs)
    took: list[float] = []
    waiting, began = Waiting(), time.perf_counter()
    waiting.slowdown()
    while len(took) < MAX_RUNS and (not took or time.perf_counter() - began < MAX_DURATION_S):
        started = time.perf_counter()
        session.run(None, inputs)
        took.append(time.perf_counter() - started)
    return {
        "gflops": round(counter.get_total_flops() / 1e9, 4),
        "ms": round(1000 * median(took), 3),
        "runs": len(took),
        "threads": torch.get_num_threads(),
        "slowdown": round(waiting.slowdown(), 2),
        "provider": session.get_providers()[0],
        "processor": _processor(),
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
