"""Analyses of videos that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from accounts.models import User
from inference.models import ModelVersion
from inference.services import models as registry
from inference.video import analyses, films
from inference.video.kind import VideoKind
from inference.video.tables import VideoAnalysis, VideoFile
from tests.factories import models as factory
from tests.inference import clips
from tests.inference.running import bring
from workers.runs import RunDir

DOOR = {"name": "door", "points": [[0, 0.5], [1, 0.5]]}
YARD = {"name": "yard", "points": [[0, 0.55], [0.5, 0.55], [0.5, 1], [0, 1]], "loiter_s": 1}
PLACES = {"lines": [DOOR], "zones": [YARD]}


def detector(owner: User, tmp_path: Path, name: str = "walkers") -> ModelVersion:
    """A version of the follower."""
    archive = factory.zipped(clips.follower(tmp_path / name), tmp_path / f"{name}.zip")
    return registry.register_upload(user=owner, archive=archive, filename=archive.name, name=name)


def video(owner: User, tmp_path: Path, *, seconds: float = 12.0, name: str = "walk.mp4") -> VideoFile:
    """An uploaded film of the two walkers."""
    made = clips.clip(tmp_path / name, clips.walkers, seconds=seconds)
    return films.keep(user=owner, source=made, filename=name)


def submitted(owner: User, model: ModelVersion, source: VideoFile, **asked: object) -> VideoAnalysis:
    return analyses.submit(user=owner, model_version=model, video=source, **{"places": PLACES, "cpus": 1.0} | asked)


def program(analysis: VideoAnalysis, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    run = RunDir.of(analysis.job_id, attempt)
    for folder in (run.code, run.outputs, run.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    launch = VideoKind().prepare(analysis.job, analysis.job.attempts.get(number=attempt), run)
    paths = {
        "AIP_PARAMS": run.params, "AIP_OUTPUT_DIR": run.outputs, "AIP_CHECKPOINT_DIR": run.checkpoints,
        "AIP_METRICS_FILE": run.metrics, "AIP_CONTROL_FILE": run.path / "control",
    }  # fmt: skip
    given = {name: str(path) for name, path in paths.items()} | {"OMP_NUM_THREADS": "1", **env}
    return launch.argv, {"PATH": os.environ["PATH"], **launch.env, **given}, run


def ran(analysis: VideoAnalysis) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    bring(analysis.job, "running")
    argv, env, run = program(analysis)
    done = subprocess.run(argv, cwd=run.code, env=env, capture_output=True, text=True, timeout=240, check=False)
    VideoKind().ended(analysis.job, analysis.job.attempts.get(number=1))
    bring(analysis.job, "succeeded" if done.returncode == 0 else "failed")
    analysis.refresh_from_db()
    return done.stdout + done.stderr
