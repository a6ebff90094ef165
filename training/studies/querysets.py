"""What a person may see of studies."""

from __future__ import annotations

from typing import Self

from django.db.models import Count, F, Q

from accounts.access.querysets import OwnedQuerySet
from workers.core.states import FINAL, JobState


class StudyQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("studies.study", "pk")

    def for_list(self) -> Self:
        """With their owners, and how many trials they have and how many of those run, not counting waiting ones."""
        started = set(JobState.values) - {JobState.QUEUED}
        live = Count("trials", filter=Q(trials__state="running", trials__training__job__state__in=started))
        return self.select_related("owner", "version__dataset").annotate(made=Count("trials"), live=live)

    def due(self) -> Self:
        """Those that begin trials, and those with a trial that ended, or was restored, since it was looked at."""
        ended = Q(trials__state="running", trials__training__job__state__in=FINAL)
        gone = Q(trials__state="running", trials__training=None)
        again = ~Q(trials__state="running") & Q(trials__training__job__attempt_number__gt=F("trials__attempt"))
        reopened = (
            ~Q(trials__state="running") & Q(trials__training__isnull=False) & ~Q(trials__training__job__state__in=FINAL)
        )
        judging = Q(trials__state="running", state="paused") & ~Q(pruner={})
        return self.filter(Q(state="running") | ended | gone | again | reopened | judging).distinct()


class TrialQuerySet(OwnedQuerySet):
    owner_path = "study__owner"
    visibility_path = "study__visibility"
    shared = ("studies.study", "study")

    def with_jobs(self) -> Self:
        return self.select_related("training__job__owner")

    def live(self) -> Self:
        """Those whose outcome is not known yet."""
        return self.filter(state="running")
