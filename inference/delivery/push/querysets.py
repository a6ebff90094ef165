"""Querysets of push targets and pushes: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet


class PushTargetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def for_list(self) -> Self:
        return self.select_related("owner")


class PushQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner", "target", "version__model")
