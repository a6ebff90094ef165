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
_MAX_AT_A_LOOK = 16 * _PIECE  # of one file; the next look goes on
_HEAD = 256  # bytes by which a file is told from another that got its inode number
REMEMBERED = 500  # lines of a card, for a job that began while they were being read


@dataclass(frozen=True)
class NpuLine:
    """One error of an NPU, when, and its words."""

    at: float
    text: str


@dataclass
class _Position:
    """How far a file was read, and how it begins."""

    offset: int = 0
    head: bytes = b""


@dataclass
class _Card:
    files: dict[tuple[int, int], _Position] = field(default_factory=dict)
    lines: deque[NpuLine] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class NpuLogs:
    """The logs `device-N/*.log` of a folder, as far as they were read."""

    def __init__(self) -> None:
        self._cards: dict[Path, _Card] = {}

    def read_errors(self, folder: Path, index: int) -> list[NpuLine]:
        """The newest errors of one NPU, including those of earlier reads."""
        device_folder = folder / f"device-{index}"
        card = self._cards.setdefault(device_folder, _Card())
        positions: dict[tuple[int, int], _Position] = {}
        for path in sorted(device_folder.glob("*.log")):
            with contextlib.suppress(OSError):
                self._read(path, card, positions)
        card.files = positions  # those that are gone are forgotten
        return list(card.lines)

    def _read(self, path: Path, card: _Card, positions: dict[tuple[int, int], _Position]) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return
            key = (status.st_dev, status.st_ino)
            position = card.files.get(key) or _Position()
            positions[key] = position
            if status.st_size < position.offset or os.pread(descriptor, len(position.head), 0) != position.head:
                position.offset = 0  # cut, or another file
            position.head = os.pread(descriptor, _HEAD, 0)
            for row in _new_rows(descriptor, position):
                if line := read_line(row):
                    card.lines.append(line)
        finally:
            os.close(descriptor)


def read_line(row: str) -> NpuLine | None:
    """Parse an error line; None for any other line, and for one with an invalid date."""
    match = _LINE.match(row)
    if not match:
        return None
    try:
        at = datetime.strptime(match["at"], _TIME).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return NpuLine(at, row.strip())


def key(card: str, text: str) -> str:
    """What a line of a card is known by, wherever its file was moved to; its text begins with its time."""
    return f"{card}:{hashlib.blake2s(text.encode(errors='replace'), digest_size=12).hexdigest()}"


def _new_rows(descriptor: int, position: _Position) -> Iterator[str]:
    """Complete lines that were added, up to what one read may take."""
    stop = position.offset + _MAX_AT_A_LOOK
    while position.offset < stop:
        data = os.pread(descriptor, _PIECE, position.offset)
        end = data.rfind(b"\n") + 1
        if not end and len(data) < _PIECE:  # the last line is still being written
            return
        position.offset += end or len(data)
        yield from data[:end].decode(errors="replace").splitlines()
