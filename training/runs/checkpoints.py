"""Valid checkpoints of a training, as their meta.json describes them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from aiplatform.lib import files, times
from aiplatform.lib.errors import DomainError
from aiplatform.lib.numbers import finite
from training.runs.models import TrainingJob
from workers.core.runs import RunDir

MAX_META_BYTES = 1 << 20
_NAME = re.compile(r"(\d{1,6})/(step-\d{6,12})\Z")


class NoCheckpoint(DomainError, code="no_checkpoint", field="checkpoint"): ...


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that can be restored. `name` is "<attempt>/step-000123"."""

    name: str
    attempt: int
    step: int
    epoch: float | None
    metric: float | None  # figure of merit, higher is better
    best: bool
    size_bytes: int
    written_at: datetime
    folder: Path


def valid(training: TrainingJob) -> list[Checkpoint]:
    """Valid checkpoints of all attempts, newest attempt and step first."""
    root = settings.DATA_ROOT / "jobs" / str(training.job_id)
    rows: list[Checkpoint] = []
    try:
        attempts = sorted((int(path.name) for path in root.iterdir() if path.name.isdigit()), reverse=True)
    except FileNotFoundError:
        return rows
    for attempt in attempts:
        folder = RunDir.for_attempt(training.job_id, attempt).checkpoints
        if not folder.is_dir() or folder.is_symlink():
            continue
        best = _pointed(folder / "best")
        names = sorted((path.name for path in folder.iterdir() if _NAME.match(f"1/{path.name}")), reverse=True)
        rows += [row for name in names if (row := _read(folder / name, attempt, best=name == best))]
    return rows


def folder_of(training: TrainingJob, name: str = "") -> Path:
    """Folder of a checkpoint by name; the newest for an empty name.

    Raises:
        NoCheckpoint: there is none, or none of this name.
    """
    rows = valid(training)
    if not name:
        if not rows:
            raise NoCheckpoint(_("This training has no checkpoint and cannot continue. Clone it to start again."))
        return rows[0].folder
    for row in rows:
        if name in (row.name, row.folder.name):
            return row.folder
    raise NoCheckpoint(_("Checkpoint %(name)s does not exist or is invalid.") % {"name": name[:60]})


def _read(folder: Path, attempt: int, *, best: bool) -> Checkpoint | None:
    """The checkpoint in `folder`, or None unless its meta.json is whole and its files are there."""
    if folder.is_symlink() or not folder.is_dir():
        return None
    try:
        with os.fdopen(files.open_beneath(folder, "meta.json"), "rb") as file:
            info = os.fstat(file.fileno())
            if info.st_size > MAX_META_BYTES:
                return None
            meta = json.loads(file.read(MAX_META_BYTES))
        names = meta["files"]
        sizes = [(folder / name).lstat().st_size for name in names if "/" not in name]
        step = int(meta["step"])
        written_at = times.moment(float(meta.get("time") or info.st_mtime))
    except (OSError, files.OutsideRoot, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if not isinstance(names, dict) or len(sizes) != len(names):
        return None
    return Checkpoint(
        name=f"{attempt}/{folder.name}",
        attempt=attempt,
        step=step,
        epoch=finite(meta.get("epoch")),
        metric=finite(meta.get("metric")),
        best=best,
        size_bytes=sum(sizes) + info.st_size,
        written_at=written_at,
        folder=folder,
    )


def _pointed(link: Path) -> str:
    try:
        return link.readlink().name if link.is_symlink() else ""
    except OSError:
        return ""


def label(checkpoint: Checkpoint) -> str:
    """One line about a checkpoint for a list to choose from."""
    text = _("Step %(step)s, attempt %(attempt)s") % {"step": checkpoint.step, "attempt": checkpoint.attempt}
    if checkpoint.metric is not None:
        text += f" · {checkpoint.metric:.4g}"
    return text + (f" · {_('best')}" if checkpoint.best else "")
