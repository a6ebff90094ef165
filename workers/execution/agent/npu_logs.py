"""Error lines of the NPUs' own logs: each file is read on from where it was left, so that a look costs what is new."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_LINE = re.compile(r"\[ERROR\].*?(?P<at>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d)")
_TIME = "%Y-%m-%d-%H:%M:%S"
_PIECE = 1024 * 1024  # a line longer than this is passed over
_MOST_AT_A_LOOK = 16 * _PIECE  # of one file; the next look goes on
_HEAD = 256  # bytes by which a file is told from another that got its inode number
REMEMBERED = 500  # lines of a card, for a job that began while they were being read


@dataclass(frozen=True)
class NpuLine:
    """One error of an NPU, when, and its words."""

    at: float
    text: str


@dataclass
class _Place:
    """How far a file was read, and how it begins."""

    offset: int = 0
    head: bytes = b""


@dataclass
class _Card:
    files: dict[tuple[int, int], _Place] = field(default_factory=dict)
    lines: deque[NpuLine] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class NpuLogs:
    """The logs `device-N/*.log` of a folder, as far as they were read."""

    def __init__(self) -> None:
        self._cards: dict[Path, _Card] = {}

    def of(self, folder: Path, index: int) -> list[NpuLine]:
        """The newest errors of one NPU, those of earlier looks among them."""
        mine = folder / f"device-{index}"
        card = self._cards.setdefault(mine, _Card())
        seen: dict[tuple[int, int], _Place] = {}
        for path in sorted(mine.glob("*.log")):
            with contextlib.suppress(OSError):
                self._read(path, card, seen)
        card.files = seen  # those that are gone are forgotten
        return list(card.lines)

    def _read(self, path: Path, card: _Card, seen: dict[tuple[int, int], _Place]) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                return
            known = (about.st_dev, about.st_ino)
            place = card.files.get(known) or _Place()
            seen[known] = place
            if about.st_size < place.offset or os.pread(descriptor, len(place.head), 0) != place.head:
                place.offset = 0  # cut, or another file
            place.head = os.pread(descriptor, _HEAD, 0)
            for row in _new_rows(descriptor, place):
                if line := read_line(row):
                    card.lines.append(line)
        finally:
            os.close(descriptor)


def read_line(row: str) -> NpuLine | None:
    """The error that a line tells of; None for any other line, and for one with a date that no calendar has."""
    found = _LINE.match(row)
    if not found:
        return None
    try:
        at = datetime.strptime(found["at"], _TIME).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return NpuLine(at, row.strip())


def key(card: str, text: str) -> str:
    """What a line of a card is known by, wherever its file was moved to; its text begins with its time."""
    return f"{card}:{hashlib.blake2s(text.encode(errors='replace'), digest_size=12).hexdigest()}"


def _new_rows(descriptor: int, place: _Place) -> Iterator[str]:
    """Whole lines that were added, up to what one look may take."""
    stop = place.offset + _MOST_AT_A_LOOK
    while place.offset < stop:
        data = os.pread(descriptor, _PIECE, place.offset)
        end = data.rfind(b"\n") + 1
        if not end and len(data) < _PIECE:  # the last line is still being written
            return
        place.offset += end or len(data)
        yield from data[:end].decode(errors="replace").splitlines()
