"""Write and find checkpoints. A checkpoint is complete or does not exist.

A checkpoint is a folder `step-000123/`. It is filled under another name, every file is forced to disk,
`meta.json` with the files' sha256 is written last, then one rename makes it visible. A reader takes the
newest folder whose meta.json and checksums hold and ignores everything else, so that a crash at any moment,
or a bad disk block, costs one interval of work and never the training.
Standard library only; what the files mean is their writer's business.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FORMAT = 1
MAX_CHECKPOINTS = 2  # besides the best
_NAME = re.compile(r"step-(\d{6,})$")


def write(
    root: Path,
    *,
    step: int,
    fill: Callable[[Path], object],
    metric: float | None = None,
    best: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Make `root/step-000123` out of what `fill` writes into an empty folder; return its path.

    Args:
        fill: writes files and folders.
        metric: the figure of merit at this step, higher is better; None when not known.
        best: also let `root/best` point here.
        extra: more for meta.json (epoch, world size, …).
    """
    root.mkdir(parents=True, exist_ok=True)
    partial = root / f"step-{step:06d}.tmp"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        fill(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return complete(root, partial, step=step, metric=metric, best=best, extra=extra)


def complete(
    root: Path,
    partial: Path,
    *,
    step: int,
    metric: float | None = None,
    best: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Make the filled folder `partial` the checkpoint of `step`; return its path. Arguments as of `write`."""
    final = root / f"step-{step:06d}"
    paths = sorted(path for path in partial.rglob("*") if path.is_file())
    files = {path.relative_to(partial).as_posix(): _sealed(path) for path in paths}
    meta = {"format": FORMAT, "step": step, "time": time.time(), "metric": metric, "files": files, **(extra or {})}
    _write_synced(partial / "meta.json", json.dumps(meta, indent=1))
    for folder in {path.parent for path in paths} | {partial}:
        _sync_folder(folder)
    shutil.rmtree(final, ignore_errors=True)  # a restore from an older step comes past the same step again
    partial.rename(final)
    _point(root / "latest", final.name)
    if best:
        _point(root / "best", final.name)
    _sync_folder(root)
    _prune(root)
    return final


def set_metric(root: Path, step: int, metric: float, *, best: bool) -> None:
    """Add the figure of merit of the checkpoint of `step`, which was measured after it had been written."""
    folder = root / f"step-{step:06d}"
    fresh = folder / "meta.json.new"
    _write_synced(fresh, json.dumps({**json.loads((folder / "meta.json").read_text()), "metric": metric}, indent=1))
    fresh.replace(folder / "meta.json")
    _sync_folder(folder)
    if best:
        _point(root / "best", folder.name)
        _sync_folder(root)


def meta(folder: Path) -> dict[str, Any] | None:
    """The checkpoint's meta.json if the checkpoint is whole and undamaged, else None."""
    try:
        described = json.loads((folder / "meta.json").read_text())
        files = described["files"]
        good = described["format"] == FORMAT and all(_sha256(folder / name) == sha for name, sha in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return described if good else None


def newest(*places: Path | None) -> Path | None:
    """The newest valid checkpoint among `places`: checkpoint folders or folders that hold some.

    A place that is itself a damaged checkpoint is replaced by its older neighbours.
    """
    for path in places:
        if path is None:
            continue
        chosen = path.resolve()  # `latest` and `best` are links
        if meta(chosen) is not None:
            return chosen
        match = _NAME.search(chosen.name)
        for folder in _by_step(chosen.parent if match else chosen):
            if match and _step(folder) >= int(match[1]):
                continue
            if meta(folder) is not None:
                return folder
    return None


def _by_step(root: Path) -> list[Path]:
    """The folders that look like checkpoints, newest first."""
    if not root.is_dir():
        return []
    return sorted((path for path in root.iterdir() if _NAME.search(path.name)), key=_step, reverse=True)


def _step(folder: Path) -> int:
    match = _NAME.search(folder.name)
    return int(match[1]) if match else -1


def _prune(root: Path) -> None:
    """Keep the last two and the best; drop what a crash left half made."""
    best = (root / "best").resolve().name if (root / "best").is_symlink() else ""
    for folder in [*_by_step(root)[MAX_CHECKPOINTS:], *root.glob("step-*.tmp")]:
        if folder.name != best:
            shutil.rmtree(folder, ignore_errors=True)


def _point(link: Path, target: str) -> None:
    fresh = link.with_name(f"{link.name}.new")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()
    fresh.symlink_to(target)
    fresh.replace(link)


def _sealed(path: Path) -> str:
    """Force one file to disk and return its sha256."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return _sha256(path)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):  # not hashlib.file_digest: the SDK supports Python 3.9
            digest.update(block)
    return digest.hexdigest()


def _write_synced(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
