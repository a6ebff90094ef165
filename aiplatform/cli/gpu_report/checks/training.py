"""Checks of trainings: step time against a bare loop, mixed precision, torch.compile, data loading, preemption."""

from __future__ import annotations

import json
import shutil
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

from aiplatform.cli.gpu_report import images, jobs
from aiplatform.cli.gpu_report.definitions import Context, Values
from datasets.formats.neutral import CLASSES
from training import presets
from training.presets import checkpoints as saved_checkpoints
from workers.execution.measurement_jobs import MeasurementJob
from workers.resources.nodes.telemetry.nvml import find_probe

PRESET, TASK = "classify", "Classification"
SECONDS = 6.0
LARGE: dict[str, Any] = {"architecture": "resnet18", "width": 128, "height": 128, "batch_size": 128}
SMALL: dict[str, Any] = {"architecture": "resnet9", "net_width": 8, "width": 32, "height": 32, "batch_size": 16}
COMMON = {"budget_minutes": 0, "eval_share": 0, "steps": 1_000_000}
SUSPENDED = 75  # exit code of a preset that left a checkpoint
STEPS = 20  # before it is suspended
LEFT_MIB, FREED_S = 64, 10.0
_homes = count(1)


def precision(context: Context, seconds: float = SECONDS) -> Values:
    """Train the same network in 32 bits and in bfloat16, by the preset and by a bare loop."""
    data = _data(context)
    values: dict[str, float] = {}
    for name, amp in (("fp32", False), ("bf16", True)):
        values |= _compared(context, data, name, seconds, amp=amp)
    return values | {"speedup": round(values["fp32_step_ms"] / values["bf16_step_ms"], 3)}


def compiled(context: Context, seconds: float = SECONDS) -> Values:
    """Train with torch.compile, by the preset and by a bare loop, and compare with the preset without it."""
    data = _data(context)
    values = _compared(context, data, "compiled", seconds, amp=True, compile=True)
    eager = _loop(context, data, "preset_loop.py", seconds, amp=True)
    return values | {"speedup": round(_step_ms(eager) / values["compiled_step_ms"], 3)}


def loading(context: Context, seconds: float = SECONDS) -> Values:
    """Measure how long a training waits for its batches, and how many images it learns from."""
    values = _loop(context, _data(context), "preset_loop.py", seconds, amp=True)
    rate = values["steps"] * values["batch"] / values["seconds"]
    return {"wait_share": round(values["wait_share"], 4), "images_s": round(rate, 1)}


def checkpoint(context: Context) -> Values:
    """Suspend a preset training as a preemption does, and let it continue from its checkpoint."""
    data, before = _data(context), _used_mib(context)
    first = _preset(context, data, "first")
    first_steps = Path(first.home, "metrics.jsonl")
    first.wait_for(lambda: (_steps(first_steps) or [0])[-1] >= STEPS, "the training makes no steps", context.seconds)
    began = time.monotonic()
    first.request("suspend")
    first.wait_for(first.has_ended, "the training does not leave the GPU", context.seconds)
    left_s = time.monotonic() - began
    left_mib = _left_mib(context, before)
    checkpoints, last = Path(first.home, "checkpoints"), _steps(first_steps)[-1]
    second = _preset(context, data, "second", checkpoints)
    second_steps = Path(second.home, "metrics.jsonl")
    second.wait_for(lambda: _steps(second_steps), "the program does not continue", context.seconds)
    second.kill()
    saved = _saved_step(checkpoints)
    return {
        "code": first.exit_code() or 0, "left_s": round(left_s, 2), "left_mib": round(left_mib, 1), "step": saved,
        "lost": max(0, last - saved), "repeated": max(0, saved + 1 - _steps(second_steps)[0]),
    }  # fmt: skip


def _compared(context: Context, data: Path, name: str, seconds: float, **params: Any) -> dict[str, float]:
    """Step time of the preset, and its rate as a share of a bare loop's."""
    preset = _loop(context, data, "preset_loop.py", seconds, **params)
    bare = _loop(context, data, "bare_loop.py", seconds, **params)
    return {
        f"{name}_step_ms": round(_step_ms(preset), 3),
        f"{name}_bare_ms": round(_step_ms(bare), 3),
        f"{name}_share": round(_step_ms(bare) / _step_ms(preset), 3),
    }


def _step_ms(values: dict[str, Any]) -> float:
    return 1000 * float(values["seconds"]) / float(values["steps"])


def _loop(context: Context, data: Path, program: str, seconds: float, **params: Any) -> dict[str, Any]:
    task = [TASK] if program == "bare_loop.py" else []
    options = _options(context, data, params)
    options["env"]["AIP_CONTROL_FILE"] = str(options["read_write"][0] / "control")  # the program ends itself by it
    return jobs.run(context, program, PRESET, *task, seconds, **options)


class _Preset(MeasurementJob):
    """A preset as the platform starts it; its metrics and checkpoints are below `home`."""

    home: Path


def _preset(context: Context, data: Path, name: str, resume_from: Path | None = None) -> _Preset:
    options = _options(context, data, {"amp": False, "show_steps": True})
    options["env"]["AIP_CHECKPOINT_DIR"] = str(options["read_write"][0] / "checkpoints")
    if resume_from:
        options["env"]["AIP_RESUME_FROM"] = str(resume_from)
        options["read_only"].append(resume_from)
    devices = () if context.device == "cpu" else context.devices[:1]
    job = _Preset(
        context.folder / name, [sys.executable, "-m", f"presets.{PRESET}"], devices,
        max_runtime_s=context.seconds, listens=["pause", "suspend", "finish"], **options,
    )  # fmt: skip
    job.home = options["read_write"][0]
    return job


def _options(context: Context, data: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Variables and folders of a preset's job; the first writable folder is its own."""
    home, cache = (images.folder_for_jobs(context.folder / name) for name in (f"home-{next(_homes)}", "cache"))
    code = context.folder / "presets-code"
    if not code.is_dir():
        shutil.copytree(Path(presets.__file__).parent, code / "presets", ignore=shutil.ignore_patterns("__pycache__"))
    size = SMALL if context.device == "cpu" else LARGE
    (home / "params.json").write_text(json.dumps({**COMMON, **size, **params}))
    images.folder_for_jobs(home / "checkpoints")
    environ = {
        "PYTHONPATH": str(code),
        "AIP_DATASET_DIR": str(data),
        "AIP_CHECKPOINT_DIR": str(home / "checkpoints"),
        "AIP_CACHE_DIR": str(cache),
        "AIP_PARAMS": str(home / "params.json"),
        "AIP_METRICS_FILE": str(home / "metrics.jsonl"),
        "AIP_STARTED_AT": "",
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
    }
    return {"env": environ, "read_only": [data, code], "read_write": [home, cache]}


def _data(context: Context) -> Path:
    side = 32 if context.device == "cpu" else LARGE["width"]
    return images.dataset(
        context.folder / "data",
        task=CLASSES,
        count=64 if context.device == "cpu" else 1024,
        side=int(side),
    )


def _steps(metrics: Path) -> list[int]:
    """The steps that a training reported so far, in order."""
    try:
        lines = metrics.read_text().rpartition("\n")[0].splitlines()
    except OSError:
        return []
    rows = [json.loads(line) for line in lines]
    return [row["step"] for row in rows if "train/loss" in row]


def _saved_step(checkpoints: Path) -> int:
    """The step of the newest whole checkpoint; 0 without one."""
    newest = saved_checkpoints.newest(checkpoints)
    return int((saved_checkpoints.meta(newest) or {}).get("step", 0)) if newest else 0


def _left_mib(context: Context, before: float) -> float:
    """Memory that stays in use; the driver may need a moment after the end of a process."""
    deadline = time.monotonic() + FREED_S
    while (left_mib := _used_mib(context) - before) > LEFT_MIB and time.monotonic() < deadline:
        time.sleep(0.2)
    return left_mib


def _used_mib(context: Context) -> float:
    """Memory of the first GPU that is in use; 0 on CPUs."""
    if context.device == "cpu":
        return 0.0
    index = context.devices[0].index
    return next((reading.memory_used_mib or 0.0 for reading in find_probe().read() if reading.index == index), 0.0)
