"""Querysets of models, evaluations and services: which rows a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import Exists, OuterRef, Subquery

from accounts.querysets import OwnedQuerySet
from aiplatform.lib import search
from aiplatform.lib.columns import USER_NAMES, narrow
from workers.states import FINAL, GROUPS

if TYPE_CHECKING:
    from accounts.models import User


class ModelQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("inference.model", "pk")

    def for_list(self) -> Self:
        """With owner and figures of the newest version: newest_number, newest_task, newest_metrics, newest_bytes."""
        newest = self.model.versions.rel.related_model._default_manager.filter(model=OuterRef("pk")).order_by("-number")
        return (
            narrow(self.select_related("owner"), owner=USER_NAMES)
            .annotate(
                newest_id=Subquery(newest.values("pk")[:1]),
                newest_number=Subquery(newest.values("number")[:1]),
                newest_task=Subquery(newest.values("task")[:1]),
                newest_metrics=Subquery(newest.values("metrics")[:1]),
                newest_bytes=Subquery(newest.values("size_bytes")[:1]),
                newest_stage=Subquery(newest.values("stage")[:1]),
            )
            .prefetch_related("aliases__version")
        )

    def named_like(self, text: str) -> Self:
        """Name or description contains each of the words."""
        return search.having(self, text, "name", "description")

    def narrowed(self, *, task: str = "", stage: str = "", alias: str = "", group: int | None = None) -> Self:
        """Models with a version of a task, in a stage, or under an alias; and those of people in a group."""
        rows = self
        versions = self.model.versions.rel.related_model._default_manager.filter(model=OuterRef("pk"))
        if task:
            rows = rows.filter(Exists(versions.filter(task=task)))
        if stage:
            rows = rows.filter(Exists(versions.filter(stage=stage)))
        if alias:
            rows = rows.filter(Exists(versions.filter(aliases__name=alias)))
        if group is not None:
            rows = rows.filter(owner__user_groups=group)
        return rows


class ModelVersionQuerySet(OwnedQuerySet):
    owner_path = "model__owner"
    visibility_path = "model__visibility"
    shared = ("inference.model", "model")

    def in_use(self) -> Self:
        """Versions that something new may begin with: those that are not archived."""
        return self.exclude(stage="archived")


class VersionPartQuerySet(OwnedQuerySet):
    """Parts of the composed versions that somebody may see."""

    owner_path = "version__model__owner"
    visibility_path = "version__model__visibility"
    shared = ("inference.model", "version__model")


class ModelAliasQuerySet(ModelVersionQuerySet):
    """Aliases of the models that somebody may see."""


class PromotionRuleQuerySet(ModelVersionQuerySet):
    """Rules of the models that somebody may see."""


class ModelTaskQuerySet(OwnedQuerySet):
    owner_path = "job__owner"


class JobRowQuerySet(OwnedQuerySet):
    """Rows that say what a job of somebody means."""

    owner_path = "job__owner"

    def in_state(self, word: str) -> Self:
        """Those in a group of states (`waiting`) or in one state (`queued`); all for an empty word."""
        return self.filter(job__state__in=GROUPS.get(word, (word,))) if word else self

    def unfinished(self) -> Self:
        return self.exclude(job__state__in=FINAL)


class ConversionQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "version__model", "data__dataset")
        return rows.prefetch_related("variants__made")

    def named_like(self, text: str) -> Self:
        """Name, model or dataset contains each of the words."""
        return search.having(self, text, "job__name", "model_label", "data_label")


class VideoFileQuerySet(OwnedQuerySet):
    def named_like(self, text: str) -> Self:
        """Its name contains each of the words."""
        return search.having(self, text, "name")


class VideoAnalysisQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        return self.select_related("job__owner", "job__cluster", "version__model", "video")

    def named_like(self, text: str) -> Self:
        """Name, model or source contains each of the words."""
        return search.having(self, text, "job__name", "model_label", "source_label")


class VideoEventQuerySet(OwnedQuerySet):
    owner_path = "analysis__job__owner"

    def narrowed(self, *, type: str = "", place: str = "") -> Self:
        """Those of a type, and those of one line or zone."""
        rows = self.filter(type=type) if type else self
        return rows.filter(place=place) if place else rows


class PredictionQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        return self.select_related("job__owner", "job__cluster", "version__model", "data__dataset")

    def named_like(self, text: str) -> Self:
        """Name, model or source contains each of the words."""
        return search.having(self, text, "job__name", "model_label", "source_label")


class PredictedDataQuerySet(OwnedQuerySet):
    owner_path = "prediction__job__owner"

    def seen_by(self, user: User) -> Self:
        """Those whose datasets this person may see, with what a list shows of them."""
        datasets = self.model._meta.get_field("dataset").related_model._default_manager.visible_to(user)
        return self.filter(dataset__in=datasets).select_related("dataset", "intake__version__dataset", "by")


class ScriptQuerySet(OwnedQuerySet):
    owner_path = "evaluation__job__owner"


class EvaluationQuerySet(JobRowQuerySet):
    def for_list(self) -> Self:
        rows = self.select_related("job__owner", "job__cluster", "model_version__model", "version__dataset")
        return rows.select_related("script__code", "job__image_use__image")

    def for_card(self) -> Self:
        """What the page of a model shows of its evaluations."""
        return self.select_related("job").only("job__name", "job__state", "version_label", "split", "task", "metrics")

    def named_like(self, text: str) -> Self:
        """Name, model or dataset contains each of the words."""
        return search.having(self, text, "job__name", "model_label", "version_label")


class EdgeGroupQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner", "wanted", "before").prefetch_related("devices")

    def named_like(self, text: str) -> Self:
        """Its name, or what it runs, contains each of the words."""
        return search.having(self, text, "name", "wanted__model_label")


class EdgeDeviceQuerySet(OwnedQuerySet):
    owner_path = "group__owner"


class ServiceTrialQuerySet(OwnedQuerySet):
    owner_path = "service__owner"


class ServiceQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def of_others(self, model: Any) -> Self:
        """Services of other people than the model's owner that answer with one of its versions."""
        return self.filter(model_version__model=model).exclude(owner=model.owner_id)

    def for_list(self) -> Self:
        rows = self.select_related("owner", "job__cluster", "model_version__model", "next_job", "next_version__model")
        rows = narrow(rows, owner=USER_NAMES)
        return rows.prefetch_related("replicas__job")

    def named_like(self, text: str) -> Self:
        """Name, description or model contains each of the words."""
        return search.having(self, text, "name", "description", "model_version__model__name")


class PushTargetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def for_list(self) -> Self:
        return self.select_related("owner")

    def named_like(self, text: str) -> Self:
        """Name or address contains each of the words."""
        return search.having(self, text, "name", "address")


class PushQuerySet(OwnedQuerySet):
    def for_list(self) -> Self:
        return self.select_related("owner", "target", "version__model")

    def named_like(self, text: str) -> Self:
        """Model or target contains each of the words."""
        return search.having(self, text, "model_name", "target_name")
