"""Prints matrix rates in TFLOPS and the memory bandwidth in GB/s. Arguments: device, side of the matrices."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

ROUNDS, TIMES = 5, 5
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def main(device: str, side: int) -> None:
    """Measure products of square matrices, and copies within the memory."""
    torch.backends.cuda.matmul.allow_tf32 = False
    factors = {name: torch.randn(side, side, device=device).to(kind) for name, kind in KINDS.items()}
    values = {
        f"{name}_tflops": 2 * side**3 / best_s(partial(torch.matmul, factor, factor), device) / 1e12
        for name, factor in factors.items()
    }
    source = torch.zeros(side * side * 4, dtype=torch.float32, device=device)
    seconds = best_s(partial(torch.empty_like(source).copy_, source), device)
    values["memory_gb_s"] = 2 * source.numel() * source.element_size() / seconds / 1e9
    print("result", json.dumps(values), flush=True)


def best_s(work: Callable[[], Any], device: str) -> float:
    """Seconds of one call, of the best round."""
    work()
    wait(device)
    values = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(TIMES):
            work()
        wait(device)
        values.append((time.perf_counter() - began) / TIMES)
    return min(values)


def wait(device: str) -> None:
    """Wait until all that was started is done."""
    if device == "cuda":
        torch.cuda.synchronize()


main(sys.argv[1], int(sys.argv[2]))
