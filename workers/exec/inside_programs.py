"""Programs of the platform's own that a job finds on its PATH. The code lies in workers/supervisor/inside."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from workers.supervisor import exec_socket


def put(folder: Path, name: str, module: str, *words: str) -> None:
    """Put a program into a folder that jobs read; one that is there is replaced at once, also under those who run it.

    Args:
        module: the file in workers/supervisor/inside that it starts.
        words: what stands before the words that it is called with.
    """
    command = [sys.executable, "-I", "-S", str(Path(exec_socket.INSIDE) / module), *words]
    beside = folder / f".{name}.{os.getpid()}"
    beside.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    beside.chmod(0o755)
    beside.rename(folder / name)
