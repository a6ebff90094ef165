"""What a person may see of reports."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import search


class ReportQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("reports.report", "pk")

    def for_list(self) -> Self:
        """With their owners, without their texts."""
        return self.select_related("owner").defer("text")

    def titled_like(self, words: str) -> Self:
        """The title or the text contains each of the words."""
        return search.filter_by_text(self, words, "title", "text")
