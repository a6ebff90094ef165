"""Conversions that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

import os
import subprocess

from inference.conversion import conversions
from inference.conversion.kind import ConversionKind
from inference.conversion.tables import Conversion
from tests.inference.running import bring
from workers.runs import RunDir

TARGETS = ("fp32", "fp16", "int8", "int8_dynamic")


def program(conversion: Conversion, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    run = RunDir.of(conversion.job_id, attempt)
    for folder in (run.code, run.outputs, run.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    launch = ConversionKind().prepare(conversion.job, conversion.job.attempts.get(number=attempt), run)
    paths = {
        "AIP_PARAMS": run.params, "AIP_OUTPUT_DIR": run.outputs, "AIP_CHECKPOINT_DIR": run.checkpoints,
        "AIP_METRICS_FILE": run.metrics, "AIP_CONTROL_FILE": run.path / "control",
    }  # fmt: skip
    given = {name: str(path) for name, path in paths.items()} | {"OMP_NUM_THREADS": "1", **env}
    return launch.argv, {"PATH": os.environ["PATH"], **launch.env, **given}, run


def ran(conversion: Conversion) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    bring(conversion.job, "running")
    argv, env, run = program(conversion)
    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    ConversionKind().ended(conversion.job, conversion.job.attempts.get(number=1))
    bring(conversion.job, "succeeded" if done.returncode == 0 else "failed")
    conversion.refresh_from_db()
    return done.stdout + done.stderr


def submitted(user, model, data, **asked: object) -> Conversion:
    """Queued with few pictures for calibration."""
    given = {"targets": TARGETS, "looks": 8, "keep": "all", "split": "test"} | asked
    return conversions.submit(user=user, model_version=model, version=data, **given)
