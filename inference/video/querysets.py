"""Querysets of video analyses: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from inference.registry.querysets import JobRowQuerySet


class VideoFileQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner")


class VideoAnalysisQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        return self.select_related("job__owner", "job__cluster", "version__model", "video")


class VideoEventQuerySet(OwnedQuerySet):
    owner_path = "analysis__job__owner"

    def narrowed(self, *, type: str = "", place_name: str = "") -> Self:
        """Filter by type, and by line or zone."""
        rows = self.filter(type=type) if type else self
        return rows.filter(place=place_name) if place_name else rows
