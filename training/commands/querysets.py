"""Queryset of custom jobs."""

from __future__ import annotations

from typing import Self

from training.programs.querysets import ProgramQuerySet


class CommandQuerySet(ProgramQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "job__array", "job__image_use", "code")
        return rows.prefetch_related("inputs", "job__attempts")
