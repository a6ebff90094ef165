"""Querysets of conversions: which rows a user may see."""

from __future__ import annotations

from typing import Self

from inference.registry.querysets import JobRowQuerySet


class ConversionQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "version__model", "data__dataset")
        return rows.prefetch_related("variants__made")
