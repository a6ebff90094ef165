"""Pictures that a rule keeps for annotation: some by chance, those with a doubtful answer. In memory, until fetched."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_SAMPLES = 20
MAX_BYTES = 64 << 20
LOW, CHANCE = "low_score", "chance"


@dataclass(frozen=True)
class Sample:
    """An image as received, its predictions, and the rule that selected it."""

    picture: bytes
    answers: Sequence[Mapping[str, Any]]
    why: str


class Keeper:
    """Keeps pictures for who fetches them; while it is full, none.

    Args:
        percent: of all pictures, by chance.
        below: those that have an answer with a lower score, 0..1; 0: none.
    """

    def __init__(self, *, percent: float, below: float) -> None:
        self._percent, self._below = percent, below
        self._kept: deque[Sample] = deque()
        self._bytes = 0

    @property
    def has_rules(self) -> bool:
        """Whether any picture could be kept."""
        return bool(self._percent or self._below)

    def consider(self, picture: bytes, answers: Sequence[Mapping[str, Any]]) -> None:
        """Store an image if a rule selects it and there is room."""
        why = self._why(answers)
        if why and len(self._kept) < MAX_SAMPLES and self._bytes + len(picture) <= MAX_BYTES:
            self._kept.append(Sample(picture, answers, why))
            self._bytes += len(picture)

    def _why(self, answers: Sequence[Mapping[str, Any]]) -> str:
        scores = [float(answer["score"]) for answer in answers if "score" in answer]
        if self._below and scores and min(scores) < self._below:
            return LOW
        return CHANCE if self._percent and random.random() * 100 < self._percent else ""  # noqa: S311  no secret

    def pop(self) -> Sample | None:
        """Return and remove the oldest sample; None if there is none."""
        if not self._kept:
            return None
        sample = self._kept.popleft()
        self._bytes -= len(sample.picture)
        return sample
