"""Folders that other users write to at the same time: reached by descriptors, one step after the other.

No link is followed, so nothing can be swapped between a check and the use. Names are bytes, as the disk has them; a
path is a tuple of them and never too long.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext as _

from aiplatform.lib import files
from aiplatform.lib.files import OutsideRoot

Parts = tuple[bytes, ...]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_REPLACE = 1


class TooLong(Exception):
    """The time given for a walk is over."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder of a walk; its path is not kept, for trees are deeper than paths are long."""

    name: bytes = b""
    above: Folder | None = None
    depth: int = 0

    def parts(self) -> Parts:
        """Its path below the root of the walk."""
        names, folder = [], self
        while folder.above is not None:
            names.append(folder.name)
            folder = folder.above
        return tuple(reversed(names))


@contextmanager
def opened(root: Path | int, parts: Sequence[bytes] = ()) -> Iterator[int]:
    """A descriptor of the folder `parts` below `root`, for reading, for as long as the block lasts.

    Raises:
        OutsideRoot: a link, or a name that is no single step.
        FileNotFoundError, NotADirectoryError, PermissionError.
    """
    descriptor = open_folder(root, parts)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_folder(root: Path | int, parts: Sequence[bytes] = ()) -> int:
    """Open a folder as `opened` does; the caller closes it."""
    here = os.dup(root) if isinstance(root, int) else _step(None, os.fsencode(root))
    try:
        for name in parts:
            below = _step(here, name)
            os.close(here)
            here = below
        return os.open(".", _FOLDER, dir_fd=here)
    finally:
        os.close(here)


def open_file(folder: int, name: bytes) -> int:
    """Open a regular file of a folder for reading; a pipe or a device is not even touched.

    Raises:
        OutsideRoot: a link, a folder or a special file.
        FileNotFoundError, PermissionError.
    """
    return files.open_regular(folder, _single(name))


def entries(folder: int) -> Iterator[tuple[bytes, os.stat_result]]:
    """Names in a folder and what they are, links as links; without those that go away meanwhile."""
    with os.scandir(folder) as listing:
        for entry in listing:
            with contextlib.suppress(FileNotFoundError):
                yield os.fsencode(entry.name), entry.stat(follow_symlinks=False)


def stat_entry(folder: int, name: bytes) -> os.stat_result:
    """Return the status of a directory entry, of a link itself."""
    return os.stat(_single(name), dir_fd=folder, follow_symlinks=False)


def walk(root: int, *, until: float | None = None) -> Iterator[tuple[Folder, bytes, os.stat_result]]:
    """Yield everything below a folder except folders; entries that cannot be opened or disappear are left out.

    Args:
        until: moment of the monotonic clock.

    Raises:
        TooLong: it is over.
    """
    with contextlib.closing(_folders(root, until)) as folders:
        for folder, here, waiting in folders:
            for name, info in entries(here):
                _look_at_clock(until)
                if stat.S_ISDIR(info.st_mode):
                    waiting.append(Folder(name, folder, folder.depth + 1))
                else:
                    yield folder, name, info


def change_owner(root: int, uid: int) -> None:
    """Change the owner of a tree to a user and the group of the same number; the root last.

    So after an interruption the root's owner shows that work is left.
    """
    with contextlib.closing(_folders(root, None)) as folders:
        for folder, here, waiting in folders:
            if folder.above is not None:
                os.fchown(here, uid, uid)
            for name, info in entries(here):
                if stat.S_ISDIR(info.st_mode):
                    waiting.append(Folder(name, folder, folder.depth + 1))
                elif info.st_nlink == 1:  # another name of the same file may stand elsewhere
                    with contextlib.suppress(FileNotFoundError):
                        os.chown(name, uid, uid, dir_fd=here, follow_symlinks=False)
    os.fchown(root, uid, uid)


def _folders(root: int, until: float | None) -> Generator[tuple[Folder, int, list[Folder]], None, None]:
    """Each folder of a tree, open until the next one, and the list that those below it go into, to be visited too."""
    at = Folder()
    here = open_folder(root)
    waiting = [at]
    try:
        while waiting:
            folder = waiting.pop()
            try:
                below = _reach(root, here, at, folder, until)
            except (OSError, OutsideRoot):
                continue
            os.close(here)
            here, at = below, folder
            yield folder, here, waiting
    finally:
        os.close(here)


def move(from_folder: int, name: bytes, to_folder: int, new_name: bytes, *, replace: bool = False) -> None:
    """Rename or move a directory entry; an existing target stays unless it may be replaced.

    Raises:
        FileExistsError: and it may not.
        OSError: the file system's own refusals.
    """
    name, new_name = _single(name), _single(new_name)
    if not replace and not _moved_where_free(from_folder, name, to_folder, new_name):
        with contextlib.suppress(FileNotFoundError):
            stat_entry(to_folder, new_name)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        replace = True
    if replace:
        os.rename(name, new_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)


def move_out(from_folder: int, name: bytes, to_folder: int, new_name: bytes) -> None:
    """Move something to where it is to be deleted; a folder that its owner closed is opened for that."""
    name = _single(name)
    try:
        os.rename(name, new_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
    except PermissionError:  # a read-only folder cannot move
        os.close(_open_writable(from_folder, name))
        os.rename(name, new_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)


def remove(folder: int, name: bytes, *, until: float | None = None) -> bool:
    """Delete an entry of a folder that no other user writes to, at any depth; return whether nothing is left.

    Each subfolder moves next to it before it is deleted.
    """
    waiting, again = deque([name]), 0
    while waiting:
        if until is not None and time.monotonic() > until:
            return False
        doomed = waiting.popleft()
        if not _delete_contents(folder, doomed, waiting):
            waiting.append(doomed)
            if (again := again + 1) > 100:  # a process that has it open continues to write
                return False
    return True


def _delete_contents(folder: int, name: bytes, waiting: deque[bytes]) -> bool:
    """Delete an entry and return whether it was deleted; its subfolders are added to `waiting`."""
    try:
        here = _open_writable(folder, name)
    except (OutsideRoot, NotADirectoryError):
        os.unlink(name, dir_fd=folder)
        return True
    except FileNotFoundError:
        return True
    try:
        for inside, info in entries(here):
            if stat.S_ISDIR(info.st_mode):
                new_name = b"." + secrets.token_hex(12).encode()
                with contextlib.suppress(FileNotFoundError):
                    move_out(here, inside, folder, new_name)
                    waiting.append(new_name)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(inside, dir_fd=here)
    finally:
        os.close(here)
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as exc:
        if exc.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _open_writable(folder: int, name: bytes) -> int:
    """Open a folder that is to be emptied, also one without permissions for its owner."""
    descriptor = _step(folder, name)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(0o700)
        return os.open(".", _FOLDER, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _moved_where_free(from_folder: int, name: bytes, to_folder: int, new_name: bytes) -> bool:
    """Move where the file system can refuse to replace; False where it does not know how (NFS).

    Raises:
        FileExistsError, OSError.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(from_folder, name, to_folder, new_name, _NO_REPLACE) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:  # also: a folder into itself, which rename says again
        return False
    raise OSError(code, os.strerror(code))


def _step(folder: int | None, name: bytes) -> int:
    """Go one step down, into a folder and through no link."""
    try:
        return os.open(name if folder is None else _single(name), _STEP, dir_fd=folder)
    except OSError as exc:
        if exc.errno in {errno.ELOOP, errno.ENOTDIR} and folder is not None and _is_link(folder, name):
            raise OutsideRoot(_("Links and special files are not supported here.")) from None
        raise


def _reach(root: int, here: int, at: Folder, folder: Folder, until: float | None) -> int:
    """Open the next folder of a walk from the one that is open, or else from the root."""
    if folder.above is None:
        return open_folder(root)
    if folder.above is at:
        return open_folder(here, (folder.name,))
    below = os.dup(root)
    try:
        for name in folder.parts():
            _look_at_clock(until)
            further = _step(below, name)
            os.close(below)
            below = further
        return os.open(".", _FOLDER, dir_fd=below)
    finally:
        os.close(below)


def _look_at_clock(until: float | None) -> None:
    if until is not None and time.monotonic() > until:
        raise TooLong


def _single(name: bytes) -> bytes:
    if name in {b"", b".", b".."} or b"/" in name or b"\0" in name:
        raise OutsideRoot(_("The path leaves the permitted folder."))
    return name


def _is_link(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
