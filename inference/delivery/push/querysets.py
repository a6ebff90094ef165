"""Querysets of push targets and pushes: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import search


class PushTargetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def for_list(self) -> Self:
        return self.select_related("owner")

    def named_like(self, text: str) -> Self:
        """Name or address contains each of the words."""
        return search.filter_by_text(self, text, "name", "address")


class PushQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner", "target", "version__model")

    def named_like(self, text: str) -> Self:
        """Model or target contains each of the words."""
        return search.filter_by_text(self, text, "model_name", "target_name")
