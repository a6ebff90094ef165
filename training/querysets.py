"""What a person may see of trainings."""

from __future__ import annotations

from typing import Self

from django.db.models import Q

from accounts.querysets import OwnedQuerySet
from workers.states import FINAL, LIVE, JobState

#: Filter words of the list → states; several states that people see as one.
GROUPS = {
    "waiting": (JobState.QUEUED, JobState.ASSIGNED, JobState.STARTING),
    "running": tuple(LIVE - {JobState.ASSIGNED, JobState.STARTING, JobState.FROZEN}),
    "paused": (JobState.FROZEN,),
    "completed": (JobState.SUCCEEDED, JobState.FINISHED_EARLY),
    "failed": (JobState.FAILED, JobState.LOST),
    "stopped": (JobState.STOPPED,),
}


class TrainingJobQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def for_list(self) -> Self:
        return self.select_related("job__owner", "job__cluster", "version__dataset")

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)

    def in_state(self, word: str) -> Self:
        """Trainings of a group of states (`waiting`) or of one state (`queued`); all for an empty word."""
        if not word:
            return self
        return self.filter(job__state__in=GROUPS.get(word, (word,)))

    def named_like(self, words: str) -> Self:
        """Name, description, preset or dataset contains each of the words."""
        found = self
        for word in words.split():
            found = found.filter(
                Q(job__name__icontains=word)
                | Q(description__icontains=word)
                | Q(preset__icontains=word)
                | Q(version_label__icontains=word)
            )
        return found
