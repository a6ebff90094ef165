"""The command line that `ps`, /proc and the page of a node show for this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path


def set_title(argv: Sequence[str]) -> None:
    """Show `argv` as the command line of this process.

    It is cut to the length of the command line that the process was started with: the kernel shows that memory
    (fields 48 and 49 of /proc/PID/stat, proc(5)), and what follows it is the environment.
    """
    fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end:
        room = end - start
        ctypes.memmove(start, b"\0".join(map(os.fsencode, argv))[: room - 1].ljust(room, b"\0"), room)
