"""What a person may see of environments."""

from __future__ import annotations

from typing import Self

from django.db.models import F, Prefetch

from training.programs.querysets import ProgramQuerySet
from workers.core import run_time
from workers.core.models import Attempt
from workers.core.states import JobState


class EnvironmentQuerySet(ProgramQuerySet):
    def for_list(self) -> Self:
        """With all that `panel.facts` says of them."""
        live = Prefetch("job__attempts", Attempt.objects.filter(ended_at=None), to_attr="live_attempts")
        rows = self.select_related("job__owner", "job__cluster", "job__image_use", "code")
        return rows.prefetch_related("inputs", live, run_time.with_turns("job__"))

    def not_deleted(self) -> Self:
        """Filter out deleted rows."""
        return self.filter(deleted_at=None)

    def running(self) -> Self:
        """Filter rows whose JupyterLab can be queried: they run and are not paused."""
        return self.filter(job__state=JobState.RUNNING)

    def awaited(self) -> Self:
        """Of those that run the ones that have not been seen ready."""
        return self.running().exclude(attempt=F("job__attempt_number"), ready_at__isnull=False)
