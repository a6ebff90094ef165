"""Resume checkpoint: links the checkpoint an attempt begins from into its run directory; nobody can take it away."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from pathlib import Path

from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath, remove_tree, walk_beneath
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.jobs import checkpoints

log = logging.getLogger(__name__)

FOLDER = "resume"  # in the run directory
MAX_ATTEMPTS = 5


def hold(attempt: Attempt, run: RunDir) -> None:
    """Give the attempt's checkpoint a second name in its own run directory, and let `checkpoint_in` point there.

    The attempt before may still run behind a cut cable and remove its old checkpoints as it goes on. Where the chosen
    one is gone by now, the newest whole one is taken; where none is left, the attempt begins anew. Hard links cost no
    room; where there can be none (another owner, another file system) the bytes are copied. Safe to repeat.
    """
    if not attempt.checkpoint_in or Path(attempt.checkpoint_in).is_relative_to(run.path):
        return
    source: Path | None = Path(attempt.checkpoint_in)
    for _try in range(MAX_ATTEMPTS):
        if source is None:
            break
        remove_tree(run.path / FOLDER)  # of an earlier call that was killed
        try:
            checkpoint = _linked(source, run.path / FOLDER)
        except (OSError, ValueError, DomainError) as exc:
            log.warning("job=%s checkpoint %s cannot be kept: %s", attempt.job_id, source, exc)
            source = checkpoints.newest_checkpoint(attempt.job)
            continue
        _hold_the_one_before(source, run.path / FOLDER)
        _hold_the_best(source, run.path / FOLDER)
        Attempt.objects.filter(pk=attempt.pk).update(checkpoint_in=str(checkpoint))
        attempt.checkpoint_in = str(checkpoint)
        return
    Attempt.objects.filter(pk=attempt.pk).update(checkpoint_in="")
    attempt.checkpoint_in = ""


def _linked(source: Path, home: Path) -> Path:
    """Second names for all files of a checkpoint, under the checkpoint's own name.

    Raises:
        OSError, ValueError, DomainError: it vanishes, is not whole, or holds links.
    """
    target = home / source.name
    target.mkdir(parents=True)
    for relative in walk_beneath(source):
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        opened = open_beneath(source.parent, f"{source.name}/{relative}")
        try:
            _name(opened, target / relative)
        finally:
            os.close(opened)
    meta = json.loads((target / "meta.json").read_text())
    named = meta.get("files") if isinstance(meta, dict) else None
    if missing := [name for name in named or () if not (target / name).is_file()]:
        raise ValueError(f"{', '.join(missing[:3])} is missing")
    return target


def _hold_the_one_before(source: Path, home: Path) -> None:
    """The older neighbour too: a reader that finds a bad checksum takes that one."""
    older = sorted((path for path in source.parent.glob("step-*[0-9]") if path.name < source.name), reverse=True)
    for path in older[:1]:
        try:
            _linked(path, home)
        except (OSError, ValueError, DomainError) as exc:
            log.info("checkpoint %s is not kept: %s", path, exc)


def _hold_the_best(source: Path, home: Path) -> None:
    """The best checkpoint so far too, under its name `best`: a training may give back that one in the end."""
    try:
        name = (source.parent / "best").readlink().name  # a program made the link: only its last part counts
        if not (home / name).exists():
            _linked(source.parent / name, home)
        (home / "best").symlink_to(name)
    except (OSError, ValueError, DomainError) as exc:
        log.info("the best checkpoint beside %s is not kept: %s", source, exc)


def _name(opened: int, target: Path) -> None:
    with contextlib.suppress(OSError):
        os.link(f"/proc/self/fd/{opened}", target, follow_symlinks=True)
        return
    with os.fdopen(os.dup(opened), "rb") as bytes_of, target.open("wb") as copy:
        shutil.copyfileobj(bytes_of, copy, 1024 * 1024)
