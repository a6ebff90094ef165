"""Read and write files safely: only beneath a root, completely or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError

CHUNK = 1 << 20
MAX_DEPTH = 64
COPY_BLOCK_BYTES = 1 << 20
"""Folders within one another that a lenient walk looks into: each costs as much as all above it."""


class OutsideRoot(DomainError, code="outside_root", status=403):
    """A path leaves the folder it must stay in, or meets a link or a special file."""


MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 3000  # of every file system; a path leaves room for the root above it


def resolve_beneath(root: Path, relative: str | Path) -> Path:
    """The real path of `relative` below `root`, all links followed.

    Raises:
        OutsideRoot: it leads out of `root` ("..", an absolute path elsewhere, a link), holds a NUL, or is too long for
            a file system, which refuses to look whether it is there.
    """
    text = os.fspath(relative)
    if "\0" in text:
        raise OutsideRoot(_("A path must not contain a NUL character."))
    encoded = os.fsencode(text)
    if len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MAX_NAME_BYTES:
        raise OutsideRoot(_("This path, or a name in it, is longer than file systems allow."))
    base = Path(os.path.realpath(root))
    real = Path(os.path.realpath(base / text))
    if not real.is_relative_to(base):
        raise OutsideRoot(_("The path leaves the permitted folder."))
    return real


def open_beneath(root: Path, relative: str | Path) -> int:
    """Open the regular file `relative` below `root` for reading and return its descriptor.

    No link is followed anywhere on the way, so nothing can be swapped between a check and the use;
    pipes, sockets and devices are refused without waiting for them.

    Raises:
        OutsideRoot: a link, a special file or a way out.
        FileNotFoundError: nothing there.
    """
    path = PurePath(relative)
    parts = path.parts
    if not parts or "\0" in os.fspath(relative) or path.is_absolute() or ".." in parts:
        raise OutsideRoot(_("The path leaves the permitted folder."))
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = _open_at(folder, part, os.O_PATH | os.O_DIRECTORY)
            os.close(folder)
            folder = below
        return open_regular(folder, parts[-1])
    finally:
        os.close(folder)


def open_regular(folder: int, name: bytes | str) -> int:
    """Open a file of a folder for reading; special files are not opened, as opening a pipe or a device has effects.

    Raises:
        OutsideRoot: a link, a folder or a special file.
        FileNotFoundError: nothing there.
    """
    descriptor = _open_at(folder, name, os.O_PATH)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            raise OutsideRoot(_("Links and special files are not supported here."))
        if not stat.S_ISREG(mode):
            raise OutsideRoot(_("This is not a regular file."))
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(descriptor)


def _open_at(folder: int, name: bytes | str, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as exc:
        if exc.errno == errno.ELOOP or (exc.errno == errno.ENOTDIR and _is_link(folder, name)):
            raise OutsideRoot(_("Links and special files are not supported here.")) from None
        raise


def _is_link(folder: int, name: bytes | str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def walk_beneath(root: Path, *, max_files: int | None = None, lenient: bool = False) -> Iterator[str]:
    """Yield relative paths of all regular files below `root`, sorted, without links and special files.

    Args:
        lenient: leave out folders that cannot be looked into (closed, gone by now), and those below `DEEPEST` others.

    Raises:
        OutsideRoot: more than `max_files` files.
    """
    count = 0
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder if folder else root) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            if lenient:
                continue
            raise
        below = []
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not lenient or path.count("/") < MAX_DEPTH:
                    below.append(path)
            elif entry.is_file(follow_symlinks=False):
                count += 1
                if max_files is not None and count > max_files:
                    message = _("The folder contains more than %(limit)s files.") % {"limit": f"{max_files:,}"}
                    raise OutsideRoot(message, limit=max_files)
                yield path
        waiting.extend(reversed(below))


@contextmanager
def atomic_writer(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Write a file that appears at `path` complete and on disk, or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open(mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step that survives a crash."""
    with atomic_writer(path) as file:
        file.write(data)


def write_json(path: Path, value: object) -> None:
    """Replace `path` by `value` as JSON in one step that survives a crash."""
    write_atomically(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def flush_folder(folder: Path) -> None:
    """Make renames and new names in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def flush_filesystem(folder: Path) -> None:
    """Write everything pending on `folder`'s file system to disk; cheaper than one fsync per small file."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))
    finally:
        os.close(fd)


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_tree(path: Path) -> None:
    """Delete a folder and all in it, however deep; a missing one is fine. Half-deleted trees never keep their name."""
    doomed = path.with_name(f".{path.name}.{os.getpid()}.deleted")
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return
    try:
        shutil.rmtree(doomed, ignore_errors=True)
    except RecursionError:
        _flatten(doomed)


def _flatten(root: Path) -> None:
    """Delete a tree that is deeper than calls reach: each folder in it moves next to `root` before its deletion."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        if folder.is_symlink():  # replaced a folder; from here on no other process can create one
            folder.unlink()
            continue
        with os.scandir(folder) as listing:
            below = [entry.path for entry in listing if entry.is_dir(follow_symlinks=False)]
        for path in below:
            sibling = root.with_name(f"{root.name}.{secrets.token_hex(8)}")
            with contextlib.suppress(OSError):
                Path(path).rename(sibling)
                waiting.append(sibling)
        shutil.rmtree(folder, ignore_errors=True)


def tree_size(path: Path) -> int:
    """Bytes of all regular files below `path`."""
    return sum((path / name).lstat().st_size for name in walk_beneath(path)) if path.is_dir() else 0


def free_bytes(path: Path) -> int:
    """Bytes an ordinary user may still write on the file system of `path` (or of its nearest existing parent)."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def copy_data(source: BinaryIO, target: BinaryIO) -> None:
    """Copy a file into an empty one; file systems that can (XFS, Btrfs) share the blocks until one changes.

    A hard link would save the space everywhere, but writers of the source could then change the copy. What is
    appended meanwhile is left out, so a program that writes without end does not keep the copy from ending.
    """
    remaining = os.fstat(source.fileno()).st_size
    try:
        while remaining and (count := os.copy_file_range(source.fileno(), target.fileno(), remaining)):
            remaining -= count
    except OSError as exc:
        if exc.errno not in {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}:
            raise
        while remaining and (block := source.read(min(remaining, COPY_BLOCK_BYTES))):
            remaining -= target.write(block)


def link_or_copy(source: Path, target: Path) -> None:
    """Give `source`'s bytes a second name without copying, where the file system can; else copy."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as exc:
        if exc.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
            raise
        shutil.copyfile(source, target)
