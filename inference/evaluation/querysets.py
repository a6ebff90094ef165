"""Querysets of evaluations: which rows a user may see."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from inference.registry.querysets import JobRowQuerySet, ModelVersionQuerySet


class PromotionRuleQuerySet(ModelVersionQuerySet):
    """Rules of the models that a user can see."""


class ScriptQuerySet(OwnedQuerySet):
    owner_path = "evaluation__job__owner"


class EvaluationQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "model_version__model", "version__dataset")
        return rows.select_related("script__code", "job__image_use__image")

    def for_card(self) -> Self:
        """What the page of a model shows of its evaluations."""
        return self.select_related("job").only(
            "job__name", "job__state", "version_label", "split", "task", "metrics", "is_scripted"
        )


class EvaluationSetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("inference.evaluationset", "pk")

    def for_list(self) -> Self:
        return self.select_related("owner", "version__dataset", "code", "image")
