"""Copy files; large ones in a process of their own, so that a web process neither copies nor hashes them.

A thread that copies and hashes 200 MB takes half a second of CPU from all requests of its process. A thread that waits
for another process takes none.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from aiplatform.lib import copy_program
from aiplatform.lib.files import copy_data

INLINE_BYTES = 8 << 20  # up to here, starting a process takes longer than the work


def copy(source: BinaryIO, target: Path) -> None:
    """Copy an open file from its beginning; what is appended meanwhile is left out.

    Raises:
        OSError: such as of a full disk; the target may be incomplete then.
    """
    with target.open("wb") as out:
        size = os.fstat(source.fileno()).st_size
        if size > INLINE_BYTES:
            _run(source, out, size)
        else:
            copy_data(source, out)


def copy_hashed(source: BinaryIO, target: Path) -> str:
    """Copy as `copy` does; the SHA-256 of the copy in hex."""
    with target.open("wb") as out:
        size = os.fstat(source.fileno()).st_size
        if size > INLINE_BYTES:
            return _run(source, out, size, "hash")
        data = source.read(size)
        out.write(data)
        return hashlib.sha256(data).hexdigest()


def _run(source: BinaryIO, target: BinaryIO, size: int, *more: str) -> str:
    """Let the program copy; what it prints."""
    descriptors = (source.fileno(), target.fileno())
    os.lseek(descriptors[0], 0, os.SEEK_SET)
    argv = [sys.executable, "-I", "-S", copy_program.__file__, *map(str, descriptors), str(size), *more]
    done = subprocess.run(  # noqa: S603  our own program
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=descriptors, check=False, text=True
    )
    if done.returncode > 0:
        raise OSError(done.returncode, os.strerror(done.returncode))
    if done.returncode < 0:
        raise OSError(f"The program that copies files was ended by signal {-done.returncode}.")
    return done.stdout.strip()
