"""Profiles as a program would have written them."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.factories import training as factory
from training.runs.models import TrainingJob

GPU = {
    "device": "Test card", "kind": "cuda", "threads": 4, "lanes": 1, "batch_size": 64, "precision": "bfloat16",
    "compiled": False, "steps": 10, "step_ms": 100.0, "profiled_step_ms": 140.0, "memory_mib": 900, "of_operations": 40,
    "shares": {"wait": 0.02, "forward": 0.4, "backward": 0.45, "optimizer": 0.05, "other": 0.08},
    "kernels": 100.0, "device_busy_ms": 90.0,
    "timeline": [
        {"step": 0, "part": "wait", "begin_ms": 0.0, "ms": 2.0},
        {"step": 0, "part": "forward", "begin_ms": 2.0, "ms": 40.0},
        {"step": 1, "part": "forward", "begin_ms": 102.0, "ms": 50.0},
        {"step": 9, "part": "forward", "begin_ms": 900.0, "ms": 50.0},
    ],
    "operations": [
        {"name": f"aten::op{n}", "calls": 2.0, "self_cpu_ms": 1.0, "cpu_ms": 1.5, "self_device_ms": 10.0}
        for n in range(5)
    ],
}  # fmt: skip


def changed(**facts: Any) -> dict[str, Any]:
    """That of a card, with some facts of its own."""
    return copy.deepcopy(GPU) | facts


def wrote(look: TrainingJob, about: Any) -> None:
    """Let a look have ended with this profile."""
    run = factory.move(look, "succeeded")
    (run.outputs / "profile").mkdir(parents=True, exist_ok=True)
    (run.outputs / "profile" / "profile.json").write_text(json.dumps(about))


SCRIPT = {
    **GPU, "source": "script", "torch": "2.9", "device": "cpu", "kind": "cpu", "precision": "float32", "cores": 4,
    "kernels": 0.0, "device_busy_ms": 0.0, "memory_mib": None, "batch_size": 32,
    "loader": {"kind": "DataLoader", "workers": 0, "pin_memory": False, "batch_size": 32},
    "known": ["wait", "forward", "backward"],
    "shares": {"wait": 0.6, "forward": 0.1, "backward": 0.2, "optimizer": 0.0, "other": 0.1},
    "named": {"augment": 0.06},
}  # fmt: skip


def of_a_script(**facts: Any) -> dict[str, Any]:
    """That of a script of one's own on cores, with some facts of its own."""
    return copy.deepcopy(SCRIPT) | facts
