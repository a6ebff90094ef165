"""Lines on a terminal: a coloured prefix per process, no colour where it is not supported."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

COLOURS = ("36", "35", "33", "32", "34", "96", "95", "93", "92", "94")


_quiet_stdout = False


def coloured() -> bool:
    return stream().isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str) -> str:
    return f"\033[{colour}m{text}\033[0m" if coloured() else text


def line(name: str, text: str, *, colour: str = "90", width: int = 10) -> None:
    """`name │ text`, flushed, so that several writers stay readable.

    A line that cannot be written is lost: a closed terminal or a full disk must not keep `up` from its work.
    """
    with contextlib.suppress(OSError):
        print(f"{paint(name.ljust(width), colour)} {paint('│', '90')} {text}", file=stream(), flush=True)


def stream() -> TextIO:
    """Return the stream of messages: stderr when stdout is for a program (`up --demo --json`)."""
    return sys.stderr if _quiet_stdout else sys.stdout


def keep_stdout_for_programs() -> None:
    """Send messages to stderr from now on."""
    global _quiet_stdout  # noqa: PLW0603 - one terminal per process
    _quiet_stdout = True
