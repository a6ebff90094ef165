"""Programs of checks, run as measurement jobs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from aiplatform.cli.gpu_report.definitions import Context
from workers.execution.measurement_jobs import Failed, MeasurementJob
from workers.resources.nodes.telemetry.probe import Card

PROGRAMS = Path(__file__).with_name("programs")
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = [ROOT / name for name in ("aiplatform", "inference", "training")]
RESULT = "result"  # the first word of the line of a program's values, as JSON
_numbers = count(1)


def start(
    context: Context, program: str, *arguments: object, devices: Sequence[Card] | None = None,
    with_platform: bool = False, env: Mapping[str, str] | None = None, read_only: Sequence[Path] = (),
    **fields: Any,
) -> MeasurementJob:  # fmt: skip
    """Start a file of `programs/` as a job on the first reserved GPU.

    Args:
        devices: instead of that one.
        with_platform: it may import packages of the platform that need no Django.
        fields: of the ticket.
    """
    if context.device == "cpu":
        devices = ()
    elif devices is None:
        devices = context.devices[:1]
    environ = {"OMP_NUM_THREADS": str(_threads(context)), **({"PYTHONPATH": str(ROOT)} if with_platform else {})}
    argv = [sys.executable, "-c", (PROGRAMS / program).read_text(), *map(str, arguments)]
    path = context.folder / f"{next(_numbers)}-{program.removesuffix('.py')}"
    return MeasurementJob(
        path, argv, devices, env=environ | dict(env or {}),
        read_only=[*read_only, *(PACKAGES if with_platform else ())],
        max_runtime_s=context.seconds, **fields,
    )  # fmt: skip


def result(job: MeasurementJob, limit_s: float) -> dict[str, Any]:
    """Wait for the end of a program and return the values it printed.

    Raises:
        Failed: it failed, or printed none.
    """
    job.wait(limit_s)
    lines = [line for line in job.log().splitlines() if line.startswith(f"{RESULT} ")]
    if not lines:
        raise Failed(f"the program printed no result: {job.log()[-300:]}")
    values = json.loads(lines[-1].removeprefix(f"{RESULT} "))
    return dict(values)


def run(context: Context, program: str, *arguments: object, **options: Any) -> dict[str, Any]:
    """Start a program, wait for its end and return its values."""
    job = start(context, program, *arguments, **options)
    try:
        return result(job, context.seconds)
    finally:
        job.kill()


def _threads(context: Context) -> int:
    return 1 if context.device == "cpu" else min(8, len(os.sched_getaffinity(0)))
