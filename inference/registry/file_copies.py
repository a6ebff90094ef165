"""Copy files that somebody else may still write to: so many bytes at most, and not onto a full disk."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext as _

from aiplatform.lib import copies, disk, files
from aiplatform.lib.errors import DomainError

BLOCK = 1 << 20


class TooLarge(DomainError, code="too_large", status=400, field="path"):
    """More bytes came than are taken."""


def copy_rest(source: BinaryIO, target: Path, *, max_bytes: int) -> int:
    """Copy the rest of an open file and return the number of bytes; bytes appended meanwhile are left out.

    Raises:
        TooLarge: there are more than `max_bytes`; the target is removed.
        DiskFull: the disk has no room for `max_bytes`, or for the file.
    """
    size = _size(source)
    if min(max_bytes, size) > files.free_bytes(target.parent):
        raise disk.DiskFull
    try:
        if size > max_bytes:
            raise TooLarge(_("A file exceeds the limit of %(most)s MiB.") % {"most": max_bytes >> 20})
        if _is_whole_file(source):
            copies.copy(source, target)
        else:
            with target.open("wb") as out:
                while size and (block := source.read(min(size, BLOCK))):
                    size -= out.write(block)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target.stat().st_size


def _is_whole_file(source: BinaryIO) -> bool:
    """Whether it is a file of the system, at its beginning."""
    try:
        return source.fileno() >= 0 and not source.tell()
    except OSError:
        return False


def _size(source: BinaryIO) -> int:
    at = source.tell()
    end = source.seek(0, 2)
    source.seek(at)
    return end - at
