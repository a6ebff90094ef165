"""Querysets of batch predictions: which rows a user may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from accounts.access.querysets import OwnedQuerySet

if TYPE_CHECKING:
    from accounts.models import User
from inference.registry.querysets import JobRowQuerySet


class PredictionQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        return self.select_related("job__owner", "job__cluster", "version__model", "data__dataset")


class PredictedDataQuerySet(OwnedQuerySet):
    owner_path = "prediction__job__owner"

    def seen_by(self, user: User) -> Self:
        """Rows whose datasets the user may see, with the columns of lists."""
        datasets = self.model._meta.get_field("dataset").related_model._default_manager.visible_to(user)
        return self.filter(dataset__in=datasets).select_related("dataset", "intake__version__dataset", "by")
