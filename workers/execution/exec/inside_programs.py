"""Programs of the platform's own that a job finds on its PATH. The code lies in workers/supervisor/inside."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from pathlib import Path

from workers.supervisor import exec_socket


def put(folder: Path, name: str, module: str, *words: str) -> None:
    """Put a program into a folder that jobs read; one that is there is replaced at once, also under those who run it.

    Args:
        module: the file in workers/supervisor/inside that it starts.
        words: what stands before the words that it is called with.

    Raises:
        OSError: it cannot be written.
    """
    command = [sys.executable, "-I", "-S", str(Path(exec_socket.INSIDE) / module), *words]
    beside = folder / f".{name}.{secrets.token_hex(8)}"  # new, whatever somebody else may have put there before
    opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            os.fchmod(opened, 0o755)
        beside.rename(folder / name)
    finally:
        beside.unlink(missing_ok=True)
