"""What a profile says and where it is written: the same for presets and for scripts of one's own.

The standard library only: it is copied beside scripts, which may have no torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "profile"
USUAL_STEPS, MOST_STEPS = 10, 100
MOST_OPERATIONS = 60
MOST_TRACE_BYTES = 64 << 20
LONGEST_NAME = 120
WAIT, FORWARD, BACKWARD, OPTIMIZER, OTHER = PARTS = ("wait", "forward", "backward", "optimizer", "other")
MARK = "aip::"  # begins the names of ranges that a profile lays around parts
LOADER = "enumerate(DataLoader)"  # and of that of torch's own ranges around waiting for a batch
_NO_OPERATIONS = (MARK, LOADER, "ProfilerStep")  # ranges: of no work of their own


def operations(seen: Any, steps: int) -> dict[str, Any]:
    """The operations that took most, per step; milliseconds. Kernels are what a card was given to do.

    Args:
        seen: a `torch.profiler.profile` that was stopped.
    """
    rows, kernels, busy_ms = [], 0, 0.0
    for one in seen.key_averages():
        if one.key.startswith(_NO_OPERATIONS):
            continue
        own_device = float(getattr(one, "self_device_time_total", 0.0)) / 1000
        if "cuda" in str(getattr(one, "device_type", "")).lower():
            if getattr(one, "is_user_annotation", False):  # a range around kernels, which count themselves
                continue
            kernels, busy_ms = kernels + one.count, busy_ms + own_device
        rows.append({
            "name": one.key[:LONGEST_NAME],
            "calls": round(one.count / steps, 2),
            "self_cpu_ms": round(one.self_cpu_time_total / 1000 / steps, 4),
            "cpu_ms": round(one.cpu_time_total / 1000 / steps, 4),
            "self_device_ms": round(own_device / steps, 4),
        })  # fmt: skip
    rows.sort(key=lambda row: -max(row["self_device_ms"], row["self_cpu_ms"]))
    return {
        "operations": rows[:MOST_OPERATIONS],
        "of_operations": len(rows),
        "kernels": round(kernels / steps, 1),
        "device_busy_ms": round(busy_ms / steps, 3),
    }


def keep_trace(seen: Any, folder: Path) -> None:
    """Keep the whole record for other programs, unless it is huge."""
    path = folder / "trace.json.gz"
    seen.export_chrome_trace(str(path))
    if path.stat().st_size > MOST_TRACE_BYTES:
        path.unlink()


def keep(about: Mapping[str, Any], folder: Path) -> None:
    """Write the profile; it is there whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile.tmp").write_text(json.dumps(about, indent=1))
    (folder / "profile.tmp").replace(folder / "profile.json")
