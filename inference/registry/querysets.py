"""Querysets of models and their versions: which rows a user may see."""

from __future__ import annotations

from typing import Self

from django.db.models import Exists, OuterRef, Subquery

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import ids
from aiplatform.lib.columns import USER_NAMES, narrow
from workers.core.states import FINAL, GROUPS


class ModelQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("inference.model", "pk")

    def for_list(self) -> Self:
        """With owner and figures of the newest version: newest_number, newest_task, newest_metrics, newest_data."""
        newest = self.model.versions.rel.related_model._default_manager.filter(model=OuterRef("pk")).order_by("-number")
        return (
            narrow(self.select_related("owner"), owner=USER_NAMES)
            .annotate(
                newest_id=Subquery(newest.values("pk")[:1]),
                newest_number=Subquery(newest.values("number")[:1]),
                newest_task=Subquery(newest.values("task")[:1]),
                newest_metrics=Subquery(newest.values("metrics")[:1]),
                newest_data=Subquery(newest.values("dataset_label")[:1]),
                newest_bytes=Subquery(newest.values("size_bytes")[:1]),
                newest_stage=Subquery(newest.values("stage")[:1]),
            )
            .prefetch_related("aliases__version")
        )

    def with_version(self, **values: str) -> Self:
        """Models that have a version with these values."""
        versions = self.model.versions.rel.related_model._default_manager.filter(model=OuterRef("pk"), **values)
        return self.filter(Exists(versions))


class ModelVersionQuerySet(OwnedQuerySet):
    owner_path = "model__owner"
    visibility_path = "model__visibility"
    shared = ("inference.model", "model")

    def for_list(self) -> Self:
        """With the model, its owner, the self-test, the training data and the aliases."""
        return self.select_related("model__owner", "self_test", "dataset_version").prefetch_related("aliases")

    def in_use(self) -> Self:
        """Versions that may be used for something new: those that are not archived."""
        return self.exclude(stage="archived")

    def newest_of(self, model: str) -> int | None:
        """The id of the newest version in use of the model with this id, as an address names it."""
        number = ids.number(model)
        rows = self.in_use().filter(model=number).order_by("-number") if number else self.none()
        return rows.values_list("pk", flat=True).first()


class VersionPartQuerySet(OwnedQuerySet):
    """Parts of the composed versions that a user can see."""

    owner_path = "version__model__owner"
    visibility_path = "version__model__visibility"
    shared = ("inference.model", "version__model")


class ModelAliasQuerySet(ModelVersionQuerySet):
    """Aliases of the models that a user can see."""


class ModelTaskQuerySet(OwnedQuerySet):
    owner_path = "job__owner"


class ModelImportQuerySet(OwnedQuerySet):
    """Imports that wait for a confirmation; each is its owner's alone."""


class JobRowQuerySet(OwnedQuerySet):
    """Rows that describe the jobs of users."""

    owner_path = "job__owner"

    def in_state(self, word: str) -> Self:
        """Those in a group of states (`waiting`) or in one state (`queued`); all for an empty word."""
        return self.filter(job__state__in=GROUPS.get(word, (word,))) if word else self

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)
