"""What readers find in the files of a program: points of curves, and what is no point. Pure.

Readers only add; what has no room, or is no use, is counted under a code, so that pages can say what was not kept.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_NAME_LENGTH = 120
MAX_STEP = 2**62
_NO_NAME = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Shown:
    """One thing to look at: an image, a histogram, a text, …, of a name at a step.

    `facts` go into a row; `data` into a file, checked and brought into its form by `media.py`.
    """

    kind: str
    name: str
    step: int
    at: float
    facts: Mapping[str, Any] = field(default_factory=dict)
    data: bytes = b""


@dataclass(frozen=True)
class Source:
    """Where points come from: the reader, and the file or folder that identifies one program's report.

    `shy`: says again what others say better, so its points count only where nobody else has the key.
    """

    reader: str
    place: str
    shy: bool = False

    def __str__(self) -> str:
        text = f"{self.reader}:{self.place}"
        return text if len(text) <= 250 else f"{text[:200]}#{hashlib.sha256(text.encode()).hexdigest()[:40]}"


@dataclass
class Harvest:
    """What one look found, and how much more it may take in."""

    deadline: float
    most_points: int = 200_000
    most_bytes: int = 4 * 1024 * 1024
    most_shown_bytes: int = 16 * 1024 * 1024
    most_shown: int = 400
    points: dict[Source, list[tuple[str, int, float, float]]] = field(default_factory=dict)
    shown: list[Shown] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)  # of the file that is read
    taken: int = 0
    _count: int = 0
    _shown_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the rest waits for the next look."""
        return (
            self._count >= self.most_points
            or self.taken >= self.most_bytes
            or self._shown_bytes >= self.most_shown_bytes
            or len(self.shown) >= self.most_shown
            or time.monotonic() > self.deadline
        )

    def point(self, source: Source, name: str, step: int, value: float, at: float) -> None:
        self._count += 1
        self.points.setdefault(source, []).append((name, step, value, at))

    def show(self, shown: Shown) -> None:
        self._shown_bytes += len(shown.data) + 256
        self.shown.append(shown)

    def miss(self, code: str) -> None:
        self.missed[code] += 1


def name_of(name: str) -> str:
    """A name of something to look at: without control characters, and not too long."""
    name = _NO_NAME.sub(" ", name).strip() or "?"
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return f"{name[: MAX_NAME_LENGTH - 9]}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def step_of(value: Any) -> int | None:
    """A step, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return int(value) if abs(value) <= MAX_STEP else None
    except (ValueError, OverflowError):
        return None
