"""Querysets of edge groups and devices: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet


class EdgeGroupQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner", "wanted", "before").prefetch_related("devices")


class EdgeDeviceQuerySet(OwnedQuerySet):
    owner_path = "group__owner"

    def for_list(self) -> Self:
        return self.select_related("group__wanted", "group__before")
