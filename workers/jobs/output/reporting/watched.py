"""A file that is read as it grows: how far it was read, and what its reader remembers. Pure but for the file."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

SETTLES_S = 10.0
"""What looks wrong at the end of a file that was changed so lately may be half written."""


@dataclass
class Watched:
    """`path` is below the run directory, as "outputs/runs/a/events.out…"; position and memory are kept in a row."""

    path: str
    descriptor: int
    size: int
    changed_at: float
    position: int = 0
    memory: dict[str, Any] = field(default_factory=dict)
    over: bool = False  # nothing in it is of use
    final: bool = False  # the program is over: nothing is half written

    @property
    def folder(self) -> str:
        """Its folder below the outputs, "" for that itself."""
        return self.path.rpartition("/")[0].partition("/")[2]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def is_fresh(self) -> bool:
        return not self.final and time.time() - self.changed_at < SETTLES_S

    @property
    def signature(self) -> str:
        """Changes with the file's content."""
        return f"{self.size}:{self.changed_at:.6f}"

    def give_up(self) -> None:
        """Never look into it again."""
        self.over = True
