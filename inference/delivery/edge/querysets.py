"""Querysets of edge groups and devices: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import search


class EdgeGroupQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner", "wanted", "before").prefetch_related("devices")

    def named_like(self, text: str) -> Self:
        """Its name, or what it runs, contains each of the words."""
        return search.filter_by_text(self, text, "name", "wanted__model_label")


class EdgeDeviceQuerySet(OwnedQuerySet):
    owner_path = "group__owner"
