"""What a person may see of reports."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet


class ReportQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("reports.report", "pk")

    def for_list(self) -> Self:
        """With their owners, without their texts."""
        return self.select_related("owner").defer("text")

    def with_text(self) -> Self:
        """With their owners, authors and texts."""
        return self.select_related("owner", "author")
