"""Pictures that a training left: what it sees, what it answered along the way, what its layers answer.

They lie in outputs/ of its attempts, written by the presets (`training/presets/preview.py`, `samples.py`, `layers.py`).
What is read here may be anything: a job can write what it wants.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from training.catalog.metric_labels import word
from training.runs.models import TrainingJob
from workers.jobs.output import files as output_files

MAX_FACTS_BYTES = 4 << 20
MAX_STEPS = 200
MAX_IMAGES = 24
_STEP = re.compile(r"step-(\d{6,12})\Z")
_PICTURE = re.compile(r"[1-9]\d?\.jpg\Z")


@dataclass(frozen=True)
class Point:
    """Answers at one step: the attempt that holds them, their folder, and how good the model was."""

    step: int
    attempt: int
    folder: str
    figure: str  # "AP50 0.912", "" where it is not known


@dataclass(frozen=True)
class Strip:
    """Answers to the same images through time, oldest first, and what is there."""

    images: list[int]
    truth: Point | None
    points: list[Point]


def strip(training: TrainingJob) -> Strip | None:
    """Return the predictions of all attempts, the later attempt's where a step was repeated. None without any."""
    points: list[Point] = []
    truth, images = None, 0
    for attempt in sorted(output_files.attempts(training.job)):
        root = output_files.folder_of(training.job, attempt)
        if root is None:
            continue
        folder = root / "samples"
        steps = sorted((int(match[1]), path) for path in _within(folder) if (match := _STEP.match(path.name)))
        steps = [(step, path) for step, path in steps[-MAX_STEPS:] if _is_folder(path)]
        if not steps:
            continue
        points = [point for point in points if point.step < steps[0][0]]
        points += [_point(step, attempt, root, path.name) for step, path in steps]
        images = max(images, _count(steps[-1][1]))
        if _is_folder(folder / "truth"):
            truth = Point(0, attempt, "samples/truth", "")
    return Strip(list(range(1, images + 1)), truth, points) if points and images else None


def facts(training: TrainingJob, name: str) -> tuple[int, dict[str, Any]]:
    """The newest attempt that left `<name>/<name>.json`, and what it says; (0, {}) while there is none."""
    return next(all_facts(training, name), (0, {}))


def all_facts(training: TrainingJob, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the same of each attempt that has it, newest first."""
    for attempt in output_files.attempts(training.job):
        root = output_files.folder_of(training.job, attempt)
        if root is not None and (facts := _json(root, f"{name}/{name}.json")):
            yield attempt, facts


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _within(folder: Path) -> list[Path]:
    """Return the entries of a folder; [] if it is a link, missing, or not a folder."""
    try:
        return list(folder.iterdir()) if _is_folder(folder) else []
    except OSError:
        return []


def _point(step: int, attempt: int, root: Path, name: str) -> Point:
    facts = _json(root, f"samples/{name}/about.json")
    value, key = finite(facts.get("value")), facts.get("metric")
    figure = f"{word(key)} {value:.3f}" if value is not None and isinstance(key, str) else ""
    return Point(step, attempt, f"samples/{name}", figure)


def _count(folder: Path) -> int:
    return min(sum(bool(_PICTURE.match(path.name)) for path in _within(folder)), MAX_IMAGES)


def _json(root: Path, name: str) -> dict[str, Any]:
    try:
        with os.fdopen(files.open_beneath(root, name), "rb") as file:
            content = json.loads(file.read(MAX_FACTS_BYTES))
    except (files.OutsideRoot, OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
