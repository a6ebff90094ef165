"""Copy files that somebody else may still write to: so many bytes at most, and not onto a full disk."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext as _

from aiplatform.lib import disk, files
from aiplatform.lib.errors import DomainError

BLOCK = 1 << 20


class TooLarge(DomainError):
    """More bytes came than are taken."""

    code = "too_large"
    status = 400
    field = "path"


def copied(source: BinaryIO, target: Path, *, most: int) -> int:
    """Copy what is left of an open file; gives the number of bytes.

    Raises:
        TooLarge: there are more than `most`, or there came to be; the target is gone then.
        DiskFull: the disk has no room for `most`, or for as many as there are.
    """
    if min(most, _size(source)) > files.free_bytes(target.parent):
        raise disk.DiskFull
    count = 0
    try:
        with target.open("wb") as out:
            while block := source.read(BLOCK):
                count += len(block)
                if count > most:
                    raise TooLarge(_("A file is larger than the %(most)s MiB that are taken.") % {"most": most >> 20})
                out.write(block)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return count


def _size(source: BinaryIO) -> int:
    at = source.tell()
    end = source.seek(0, 2)
    source.seek(at)
    return end - at
