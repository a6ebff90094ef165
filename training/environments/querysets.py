"""What a person may see of environments."""

from __future__ import annotations

from typing import Self

from django.db.models import F, Prefetch

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import search
from workers.core import run_time
from workers.core.models import Attempt
from workers.core.states import FINAL, GROUPS, JobState


class EnvironmentQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def for_list(self) -> Self:
        """With all that `panel.facts` says of them."""
        live = Prefetch("job__attempts", Attempt.objects.filter(ended_at=None), to_attr="live_attempts")
        rows = self.select_related("job__owner", "job__cluster", "job__image_use", "code")
        return rows.prefetch_related("inputs", live, run_time.with_turns("job__"))

    def not_deleted(self) -> Self:
        """Filter out deleted rows."""
        return self.filter(deleted_at=None)

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)

    def running(self) -> Self:
        """Filter rows whose JupyterLab can be queried: they run and are not paused."""
        return self.filter(job__state=JobState.RUNNING)

    def awaited(self) -> Self:
        """Of those that run the ones that have not been seen ready."""
        return self.running().exclude(attempt=F("job__attempt_number"), ready_at__isnull=False)

    def in_state(self, word: str) -> Self:
        """Environments of a group of states (`waiting`) or of one state (`queued`); all for an empty word."""
        return self.filter(job__state__in=GROUPS.get(word, (word,))) if word else self

    def named_like(self, query: str) -> Self:
        """Filter by words that name or description contain."""
        return search.filter_by_text(self, query, "job__name", "description")
