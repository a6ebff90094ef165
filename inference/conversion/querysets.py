"""Querysets of conversions: which rows a user may see."""

from __future__ import annotations

from typing import Self

from aiplatform.lib import search
from inference.registry.querysets import JobRowQuerySet


class ConversionQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "version__model", "data__dataset")
        return rows.prefetch_related("variants__made")

    def named_like(self, text: str) -> Self:
        """Name, model or dataset contains each of the words."""
        return search.filter_by_text(self, text, "job__name", "model_label", "data_label")
