"""Lines on a terminal: a coloured prefix per process, no colour where it is not wanted."""

from __future__ import annotations

import os
import sys

COLOURS = ("36", "35", "33", "32", "34", "96", "95", "93", "92", "94")


def coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str) -> str:
    return f"\033[{colour}m{text}\033[0m" if coloured() else text


def line(name: str, text: str, *, colour: str = "90", width: int = 10) -> None:
    """`name │ text`, flushed, so that several writers stay readable."""
    print(f"{paint(name.ljust(width), colour)} {paint('│', '90')} {text}", flush=True)
