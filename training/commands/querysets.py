"""What a person may see of commands."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import search
from workers.core.states import FINAL, GROUPS


class CommandQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "job__array", "job__image_use", "code")
        return rows.prefetch_related("inputs", "job__attempts")

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)

    def in_state(self, word: str) -> Self:
        """Commands of a group of states (`waiting`) or of one state (`queued`); all for an empty word."""
        return self.filter(job__state__in=GROUPS.get(word, (word,))) if word else self

    def named_like(self, query: str) -> Self:
        """Filter by words that name or command contain."""
        return search.filter_by_text(self, query, "job__name", "script")
