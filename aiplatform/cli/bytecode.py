"""Bytecode: compiled once and kept, whatever the environment says. Standard library only.

Reading the platform without bytecode costs three times the CPU time, at every start of every process. Containers often
set PYTHONDONTWRITEBYTECODE, and an installation may be read-only: then bytecode is kept in a folder of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DONT_WRITE, PREFIX = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"


def enable(root: Path) -> None:
    """Have this process and those it starts write bytecode, and read what was written before.

    Args:
        root: folder of the program. Bytecode is next to the sources where that is allowed and possible, else in
            `.venv/bytecode`, else in the user's cache folder. A PYTHONPYCACHEPREFIX that is set counts. Where none of
            these exists, nothing is written.
    """
    forbidden = os.environ.pop(DONT_WRITE, "") or sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    if sys.pycache_prefix or not (forbidden or not os.access(root / "aiplatform", os.W_OK)):
        return
    own = root / ".venv"
    try:
        folder = own / "bytecode" if os.access(own, os.W_OK) else Path.home() / ".cache" / "aiplatform" / "bytecode"
    except RuntimeError:  # a user without an entry in the list of users has no home folder
        return
    sys.pycache_prefix = os.environ[PREFIX] = str(folder)
