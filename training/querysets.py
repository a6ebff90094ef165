"""What a person may see of trainings."""

from __future__ import annotations

from typing import Self

from django.db.models import Count

from accounts.querysets import OwnedQuerySet
from aiplatform.lib import search
from workers.states import FINAL, GROUPS


class TrainingJobQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def for_list(self) -> Self:
        return self.select_related(
            "job__owner", "job__cluster", "job__image_use", "version__dataset", "set_use__version"
        ).prefetch_related("inputs")

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)

    def in_state(self, word: str) -> Self:
        """Trainings of a group of states (`waiting`) or of one state (`queued`); all for an empty word."""
        if not word:
            return self
        return self.filter(job__state__in=GROUPS.get(word, (word,)))

    def named_like(self, words: str) -> Self:
        """Name, description, preset or dataset contains each of the words."""
        return search.having(self, words, "job__name", "description", "preset", "version_label")


class ParameterSetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("training.parameterset", "pk")

    def for_list(self) -> Self:
        """With their owners and the number of trainings begun from them."""
        return self.select_related("owner").annotate(uses=Count("versions__uses"))

    def named_like(self, words: str) -> Self:
        """Name, description or preset contains each of the words."""
        return search.having(self, words, "name", "description", "preset")
