"""Copy a folder that others write to meanwhile. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1 << 20
MAX_LENGTH = 3072
"""Bytes of a path below the folder, so that any folder may stand before it: the kernel takes 4,096."""


@dataclass
class Copied:
    """Counts of what was copied; `linked` files were hard-linked instead, `too_deep` paths passed over."""

    files: int = 0
    bytes: int = 0
    linked: int = 0
    too_deep: int = 0


def copy_tree(
    source: Path,
    target: Path,
    *,
    leave_out: Callable[[str], bool] = lambda relative: False,
    earlier: Path | None = None,
    moved: tuple[str, str] | None = None,
) -> Copied:
    """Copy files, folders and links of `source` into `target`, with times and rights; owners too where we are root.

    What vanishes meanwhile was not wanted any more and is passed over; sockets and pipes are never copied. Holes in
    files stay holes: a program may leave a file that is larger than any disk.

    Args:
        leave_out: called with the path relative to `source`, of files and folders.
        earlier: an older copy: a file that is the same there (size, time, rights) is linked, not copied.
        moved: (old, new) beginnings of absolute paths that links point to.

    Raises:
        OSError: something that is there cannot be read, or there is no room left.
    """
    copied = Copied()
    target.mkdir(parents=True, exist_ok=True)
    waiting, folders = [""], []
    while waiting:
        inside = waiting.pop()
        with contextlib.suppress(FileNotFoundError), os.scandir(source / inside) as entries:
            for entry in entries:
                relative = f"{inside}/{entry.name}" if inside else entry.name
                if leave_out(relative):
                    continue
                if len(os.fsencode(relative)) > MAX_LENGTH:
                    copied.too_deep += 1
                    continue
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_symlink():
                        _link(Path(entry.path), target / relative, moved)
                    elif entry.is_dir():
                        (target / relative).mkdir(mode=0o700)
                        waiting.append(relative)
                        folders.append(relative)
                    elif entry.is_file():
                        _file(entry, target / relative, earlier / relative if earlier else None, copied)
    for relative in reversed(folders):  # their rights and times last, or we could not write into them
        with contextlib.suppress(FileNotFoundError):
            _dress(source / relative, target / relative)
    return copied


def _file(entry: os.DirEntry[str], target: Path, earlier: Path | None, copied: Copied) -> None:
    facts = entry.stat(follow_symlinks=False)
    if earlier is not None and _same(earlier, facts):
        os.link(earlier, target)
        copied.linked += 1
    else:
        if facts.st_blocks * 512 < facts.st_size:
            _copy_with_holes(Path(entry.path), target)
        else:
            shutil.copyfile(entry.path, target, follow_symlinks=False)
        _dress(Path(entry.path), target)
    copied.files += 1
    copied.bytes += target.stat().st_size


def _copy_with_holes(source: Path, target: Path) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(reading, "rb", buffering=0) as bytes_of, target.open("xb", buffering=0) as copy:
        size, end = os.fstat(reading).st_size, 0
        os.truncate(copy.fileno(), size)
        while end < size:
            try:
                start = os.lseek(reading, end, os.SEEK_DATA)
            except OSError as exc:
                if exc.errno == errno.ENXIO:  # nothing but a hole up to the end
                    return
                raise
            end = min(os.lseek(reading, start, os.SEEK_HOLE), size)
            bytes_of.seek(start)
            copy.seek(start)
            while block := bytes_of.read(min(end - bytes_of.tell(), BLOCK)):
                copy.write(block)


def _same(earlier: Path, facts: os.stat_result) -> bool:
    try:
        had = earlier.lstat()
    except OSError:
        return False
    return stat.S_ISREG(had.st_mode) and all(
        getattr(had, name) == getattr(facts, name) for name in ("st_size", "st_mtime_ns", "st_mode", "st_uid", "st_gid")
    )


def _dress(source: Path, target: Path) -> None:
    """Copy rights and times from the source, and its owner where that is possible."""
    if os.geteuid() == 0:
        facts = source.stat()
        os.chown(target, facts.st_uid, facts.st_gid)
    shutil.copystat(source, target)


def _link(source: Path, target: Path, moved: tuple[str, str] | None) -> None:
    points = str(source.readlink())
    if moved and (points == moved[0] or points.startswith(f"{moved[0]}/")):
        points = moved[1] + points[len(moved[0]) :]
    target.symlink_to(points)
