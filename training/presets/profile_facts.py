"""What a profile says and where it is written: the same for presets and for scripts of one's own.

The standard library only: it is copied beside scripts, which may have no torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "profile"
USUAL_STEPS, MAX_STEPS = 10, 100
MAX_OPERATIONS = 60
MAX_TRACE_BYTES = 64 << 20
MAX_NAME_LENGTH = 120
WAIT, FORWARD, BACKWARD, OPTIMIZER, OTHER = PARTS = ("wait", "forward", "backward", "optimizer", "other")
MARK = "aip::"  # begins the names of ranges that a profile lays around parts
LOADER = "enumerate(DataLoader)"  # and of that of torch's own ranges around waiting for a batch
_NO_OPERATIONS = (MARK, LOADER, "ProfilerStep")  # ranges: of no work of their own


def operations(profiler: Any, steps: int) -> dict[str, Any]:
    """Return the operations that took most time, per step, in milliseconds. Kernels are what a GPU executes.

    Args:
        profiler: a stopped `torch.profiler.profile`.
    """
    rows, kernels, busy_ms = [], 0, 0.0
    for event in profiler.key_averages():
        if event.key.startswith(_NO_OPERATIONS):
            continue
        own_device = float(getattr(event, "self_device_time_total", 0.0)) / 1000
        if "cuda" in str(getattr(event, "device_type", "")).lower():
            if getattr(event, "is_user_annotation", False):  # a range around kernels, which count themselves
                continue
            kernels, busy_ms = kernels + event.count, busy_ms + own_device
        rows.append({
            "name": event.key[:MAX_NAME_LENGTH],
            "calls": round(event.count / steps, 2),
            "self_cpu_ms": round(event.self_cpu_time_total / 1000 / steps, 4),
            "cpu_ms": round(event.cpu_time_total / 1000 / steps, 4),
            "self_device_ms": round(own_device / steps, 4),
        })  # fmt: skip
    rows.sort(key=lambda row: -max(row["self_device_ms"], row["self_cpu_ms"]))
    return {
        "operations": rows[:MAX_OPERATIONS],
        "of_operations": len(rows),
        "kernels": round(kernels / steps, 1),
        "device_busy_ms": round(busy_ms / steps, 3),
    }


def write_trace(profiler: Any, folder: Path) -> None:
    """Write the full trace for other programs, unless it is too large."""
    path = folder / "trace.json.gz"
    profiler.export_chrome_trace(str(path))
    if path.stat().st_size > MAX_TRACE_BYTES:
        path.unlink()


def write_profile(facts: Mapping[str, Any], folder: Path) -> None:
    """Write the profile atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile.tmp").write_text(json.dumps(facts, indent=1))
    (folder / "profile.tmp").replace(folder / "profile.json")
