"""Programs of job kinds, alone in a run as a job has it."""

from __future__ import annotations

import os
import subprocess

from tests.inference.running import set_state
from workers.core.kinds import JobKind
from workers.core.models import Job
from workers.core.runs import RunDir


def prepared(kind: JobKind, job: Job, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    run = RunDir.for_attempt(job.pk, attempt)
    for folder in (run.code, run.outputs, run.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    launch = kind.prepare(job, job.attempts.get(number=attempt), run)
    paths = {
        "AIP_PARAMS": run.params, "AIP_OUTPUT_DIR": run.outputs, "AIP_CHECKPOINT_DIR": run.checkpoints,
        "AIP_METRICS_FILE": run.metrics, "AIP_CONTROL_FILE": run.path / "control",
    }  # fmt: skip
    variables = {name: str(path) for name, path in paths.items()} | {"OMP_NUM_THREADS": "1", **env}
    return launch.argv, {"PATH": os.environ["PATH"], **launch.env, **variables}, run


def ran(kind: JobKind, job: Job) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    set_state(job, "running")
    argv, env, run = prepared(kind, job)
    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    kind.ended(job, job.attempts.get(number=1))
    set_state(job, "succeeded" if done.returncode == 0 else "failed")
    return done.stdout + done.stderr
