"""Analyses of videos that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

from pathlib import Path

from accounts.models import User
from inference.registry import registration as registry
from inference.registry.models import ModelVersion
from inference.video import analyses, files
from inference.video.kind import VideoKind
from inference.video.models import VideoAnalysis, VideoFile
from tests.factories import models as factory
from tests.inference import clips, programs
from workers.core.runs import RunDir

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
    return files.store(user=owner, source=made, filename=name)


def submitted(owner: User, model: ModelVersion, source: VideoFile, **options: object) -> VideoAnalysis:
    return analyses.submit(user=owner, model_version=model, video=source, **{"places": PLACES, "cpus": 1.0} | options)


def program(analysis: VideoAnalysis, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    return programs.prepared(VideoKind(), analysis.job, attempt, **env)


def ran(analysis: VideoAnalysis) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    log = programs.ran(VideoKind(), analysis.job)
    analysis.refresh_from_db()
    return log
