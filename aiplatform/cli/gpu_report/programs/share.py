"""Takes GPU memory in pieces of 64 MiB until PyTorch refuses, prints how much it got, and computes until it is ended.

Arguments: device, most pieces, and "overflow" to let the refusal end the program.
"""

from __future__ import annotations

import os
import sys
import time

import torch


def main(device: str, max_pieces: int, *, overflow: bool) -> None:
    """Hold memory and compute."""
    if device == "cuda":
        torch.cuda.set_per_process_memory_fraction(float(os.environ.get("AIP_GPU_MEMORY_FRACTION", "1")))
    held: list[torch.Tensor] = []
    try:
        for _ in range(max_pieces):
            held.append(torch.ones(16 << 20, device=device))  # noqa: PERF401 - what it got so far counts
    except torch.OutOfMemoryError:
        if overflow:
            raise
    print("held", 64 * len(held), flush=True)
    values = held.pop()[: 2048 * 2048].view(2048, 2048)
    print("computing", flush=True)
    while True:
        for _ in range(50 if device == "cuda" else 1):
            values = torch.tanh(values @ values)
        if device == "cuda":
            torch.cuda.synchronize()
        else:
            time.sleep(0.01)


main(sys.argv[1], int(sys.argv[2]), overflow=sys.argv[3:] == ["overflow"])
