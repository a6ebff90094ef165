"""Programs of the platform's own that a job finds on its PATH. The code lies in workers/supervisor/inside."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from pathlib import Path

from workers.supervisor import exec_socket


def write_program(folder: Path, name: str, module: str, *arguments: str) -> None:
    """Write a program into a folder that jobs read; an existing one is replaced at once, also while it runs.

    Args:
        module: the file in workers/supervisor/inside that it starts.
        words: what stands before the words that it is called with.

    Raises:
        OSError: it cannot be written.
    """
    command = [sys.executable, "-I", "-S", str(Path(exec_socket.INSIDE) / module), *arguments]
    partial = folder / f".{name}.{secrets.token_hex(8)}"  # a new name: another process may have created others
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            os.fchmod(descriptor, 0o755)
        partial.rename(folder / name)
    finally:
        partial.unlink(missing_ok=True)
