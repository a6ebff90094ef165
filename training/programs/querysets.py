"""Querysets of jobs that run a user's program: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from workers.core.states import FINAL, GROUPS


class ProgramQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)

    def in_state(self, word: str) -> Self:
        """Rows in a group of states (`waiting`) or in one state (`queued`); all for an empty word."""
        return self.filter(job__state__in=GROUPS.get(word, (word,))) if word else self
