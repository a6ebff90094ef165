"""Results of a training: output files of its attempts, and the final figures."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib import files, ids, times
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.parsers import is_sound
from aiplatform.lib.units import Count
from training.figure_words import word
from training.models import TrainingJob
from training.presets.catalog import PRESETS
from training.task_kinds import TASKS
from workers.runs import RunDir

MAX_LISTED = 5_000  # files shown; the zip holds all of them
MAX_ZIPPED = 200_000
MAX_FIGURES_BYTES = 1 << 20


@dataclass(frozen=True)
class Output:
    """One file under outputs/; `path` is relative to it."""

    path: str
    size_bytes: int
    changed_at: datetime

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def depth(self) -> int:
        return self.path.count("/")


def attempts(training: TrainingJob) -> list[int]:
    """Numbers of the attempts that have outputs on disk, newest first."""
    root = RunDir.of(training.job_id, 0).path.parent
    if not root.is_dir():
        return []
    numbers = [int(path.name) for path in root.iterdir() if path.name.isdigit()]
    return sorted((number for number in numbers if RunDir.of(training.job_id, number).outputs.is_dir()), reverse=True)


def attempt_of(training: TrainingJob, requested: str = "") -> int:
    """The attempt to show: the requested one, else the one whose result counts, else the newest with outputs.

    Raises:
        NotFound: no such attempt.
    """
    there = attempts(training)
    if requested:
        number = ids.number(requested)
        if number not in there:
            raise NotFound(_("There is no such attempt."))
        return number
    if training.job.is_final and training.published_attempt in there:
        return training.published_attempt
    return there[0] if there else training.job.attempt_number


def listed(training: TrainingJob, attempt: int) -> tuple[list[Output], bool]:
    """Output files of one attempt, and whether there are more than are listed."""
    root = outputs_of(training, attempt)
    if root is None:
        return [], False
    rows: list[Output] = []
    for path in files.walk_beneath(root, lenient=True):
        if len(rows) >= MAX_LISTED:
            return rows, True
        try:
            info = (root / path).lstat()
        except FileNotFoundError:  # the job is at work
            continue
        rows.append(Output(_readable(path), info.st_size, times.moment(info.st_mtime)))
    return rows, False


def open_output(training: TrainingJob, attempt: int, path: str) -> int:
    """Descriptor of one output file.

    Raises:
        NotFound: nothing there, or a path, link or special file that leads elsewhere.
    """
    root = outputs_of(training, attempt)
    if root is not None:
        try:
            return files.open_beneath(root, _on_disk(root, path))
        except (files.OutsideRoot, OSError, ValueError):
            pass
    raise NotFound(_("There is no such file."))


def _readable(path: str) -> str:
    """A name as it can be shown and sent: bytes of a file name that are no text become "?"."""
    return path.encode("utf-8", "replace").decode()


def _on_disk(root: Path, path: str) -> str:
    """Turn a readable name back into the name on disk."""
    if "?" not in path or (root / path).exists():
        return path
    return next((name for name in files.walk_beneath(root, lenient=True) if _readable(name) == path), path)


def for_zip(training: TrainingJob, attempt: int) -> list[tuple[str, Path, str]]:
    """All output files as (name in the zip, root, path below it).

    Raises:
        NotFound: no outputs.
        Invalid: too many for one zip.
    """
    root = outputs_of(training, attempt)
    rows = [] if root is None else list(_some(root))
    if not rows:
        raise NotFound(_("This training has no outputs yet."))
    return rows


def _some(root: Path) -> Iterator[tuple[str, Path, str]]:
    for count, path in enumerate(files.walk_beneath(root, lenient=True)):
        if count >= MAX_ZIPPED:
            raise Invalid(_("More than %(limit)s files: fetch them one by one.") % {"limit": MAX_ZIPPED})
        yield _readable(path), root, path


def outputs_of(training: TrainingJob, attempt: int) -> Path | None:
    """The outputs folder of an attempt, None while there is none."""
    root = RunDir.of(training.job_id, attempt).outputs
    return root if root.is_dir() and not root.is_symlink() else None


def figures(training: TrainingJob, attempt: int) -> dict[str, Any]:
    """The numbers of outputs/metrics.json; {} where it is absent or not a plain object of numbers and texts."""
    root = outputs_of(training, attempt)
    if root is None:
        return {}
    try:
        with os.fdopen(files.open_beneath(root, "metrics.json"), "rb") as file:
            content = json.loads(file.read(MAX_FIGURES_BYTES))
    except (files.OutsideRoot, OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key[:60]: value for key, value in list(content.items())[:100] if is_sound(key) and _is_figure(value)}


def _is_figure(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


def headline(training: TrainingJob) -> str:
    """The figure a list shows: "AP50 0.912"; of own code the first one it left; "" while there is none."""
    preset = PRESETS.get(training.preset)
    task = TASKS.find(preset.task) if preset else None
    first = next(iter(training.metrics), "")
    key, word = task.figure if task else (first, first)
    value = training.metrics.get(key)
    return f"{word} {value:.3f}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def readable(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Final figures as people read them: by their words, shares with four digits, counts whole."""
    for key, value in figures.items():
        yield (
            word(key),
            f"{value:.4g}" if isinstance(value, float) else str(Count(value) if type(value) is int else value),
        )
