"""Querysets of services: which rows a user may see."""

from __future__ import annotations

from typing import Any, Self

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib.columns import USER_NAMES, narrow


class ServiceTrialQuerySet(OwnedQuerySet):
    owner_path = "service__owner"


class ServiceQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def of_others(self, model: Any) -> Self:
        """Services of users other than the model's owner that serve one of its versions."""
        return self.filter(model_version__model=model).exclude(owner=model.owner_id)

    def for_list(self) -> Self:
        rows = self.select_related("owner", "job__cluster", "model_version__model", "next_job", "next_version__model")
        rows = narrow(rows, owner=USER_NAMES)
        return rows.prefetch_related("replicas__job")
