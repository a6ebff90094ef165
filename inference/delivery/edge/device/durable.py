"""Files that survive a power cut: bytes on the disk first, then the name, then the folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def at(place: str) -> None:
    """Tests die here: AIP_EDGE_DIE names the place."""
    if os.environ.get("AIP_EDGE_DIE") == place:
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


def drop(place: Path) -> None:
    """Remove a package; its name goes first, so that a half removed one is never taken for whole."""
    doomed = place.with_name(place.name + ".tmp")
    shutil.rmtree(doomed, ignore_errors=True)
    if place.exists():
        place.rename(doomed)
        at("dropping")
        shutil.rmtree(doomed, ignore_errors=True)
