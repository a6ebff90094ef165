"""What a person may see of boards."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from workers.core.models import Job
from workers.core.states import FINAL


class BoardQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def live_of(self, source: Job) -> Self:
        """Boards of a job that wait or run."""
        return self.filter(source=source).exclude(job__state__in=FINAL)
