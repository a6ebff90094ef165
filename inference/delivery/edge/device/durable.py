"""Files that survive a power cut: bytes on the disk first, then the name, then the folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def crash_point(point_name: str) -> None:
    """Kill the process where a test named this point in AIP_EDGE_DIE."""
    if os.environ.get("AIP_EDGE_DIE") == point_name:
        os.kill(os.getpid(), 9)


def sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a small file whole."""
    fresh = path.with_name(path.name + ".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def point(link: Path, target: Path) -> None:
    """Let a link name another folder; readers see the old or the new one, never nothing."""
    fresh = link.with_name(link.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.relative_to(link.parent))
    fresh.replace(link)
    sync_folder(link.parent)


def load(path: Path, default: Mapping[str, Any]) -> Json:
    try:
        return {**default, **json.loads(path.read_bytes())}
    except (OSError, ValueError):
        return dict(default)


def drop(folder: Path) -> None:
    """Remove a package; it is renamed first, so that a partly removed one never counts as complete."""
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    if folder.exists():
        folder.rename(temporary)
        crash_point("dropping")
        shutil.rmtree(temporary, ignore_errors=True)
