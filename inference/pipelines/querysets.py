"""What a person may see of pipelines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Count, Exists, Max, OuterRef, Q, Subquery

from accounts.access.querysets import OwnedQuerySet
from workers.core.states import FINAL

if TYPE_CHECKING:
    from accounts.models import User


class PipelineQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("pipelines.pipeline", "pk")

    def for_list(self) -> Self:
        """With owner, number of the newest version, count of runs, and state and time of the newest one."""
        runs = self.model.runs.rel.related_model._default_manager.filter(pipeline=OuterRef("pk")).order_by("-pk")
        return self.select_related("owner").annotate(
            newest=Max("versions__number"),
            run_count=Count("runs", distinct=True),
            last_state=Subquery(runs.values("state")[:1]),
            last_at=Subquery(runs.values("created_at")[:1]),
            last_run=Subquery(runs.values("pk")[:1]),
            last_is_asking=Subquery(runs.annotate(is_asking=_open_question(runs.model)).values("is_asking")[:1]),
        )


def _open_question(model: Any) -> Exists:
    """Whether a step of a run waits for approval; `model` is that of runs."""
    steps = model.step_runs.rel.related_model._default_manager
    return Exists(steps.filter(run=OuterRef("pk"), state="asking"))


def _of_pipeline(rows: Any, user: User, editable: Any) -> Any:
    """Those rows that are editable, and those of one's own pipelines."""
    if not user.is_authenticated or user.sees_everything:
        return editable
    own = rows.model._default_manager.filter(pipeline__owner=user)
    return rows.filter(Q(pk__in=editable.values("pk")) | Q(pk__in=own.values("pk")))


class PipelineVersionQuerySet(OwnedQuerySet):
    owner_path = "pipeline__owner"
    visibility_path = "pipeline__visibility"
    shared = ("pipelines.pipeline", "pipeline")


class PipelineDraftQuerySet(OwnedQuerySet):
    """A draft is seen by the person who draws it alone."""

    owner_path = "person"


class PipelineRunQuerySet(OwnedQuerySet):
    """Users who see a pipeline see its runs, see `open_to` for the details; the owner of a run controls it."""

    shared = ("pipelines.pipeline", "pipeline")

    def visible_to(self, user: User) -> Self:
        """Return the user's own runs, those of visible pipelines, and those with a question for the user."""
        if not user.is_authenticated or user.sees_everything:
            return super().visible_to(user)
        pipelines = self.model._meta.get_field("pipeline").related_model._default_manager.visible_to(user)
        with_question = self.model._default_manager.filter(step_runs__approval__people=user)
        return self.filter(
            Q(owner=user) | Q(pipeline__in=pipelines.values("pk")) | Q(pk__in=with_question.values("pk"))
        )

    def editable_by(self, user: User) -> Self:
        """Also those of other people in pipelines of one's own: who owns a pipeline may stop what it does."""
        return _of_pipeline(self, user, super().editable_by(user))

    def open_to(self, user: User) -> Self:
        """Return runs of which a user sees all details: those that the user may change or is a reviewer of."""
        if not user.is_authenticated or user.sees_everything:
            return self.editable_by(user)
        with_question = self.model._default_manager.filter(step_runs__approval__people=user)
        return self.filter(Q(pk__in=self.editable_by(user).values("pk")) | Q(pk__in=with_question.values("pk")))

    def with_open(self, user: User) -> Self:
        """With `is_open`: whether this person sees all of it."""
        rows = self.model._default_manager.open_to(user)
        return self.annotate(is_open=Exists(rows.filter(pk=OuterRef("pk"))))

    def for_list(self) -> Self:
        """With owner, pipeline and version, and `is_asking`: whether a step waits for approval."""
        return self.select_related("owner", "pipeline", "version").annotate(is_asking=_open_question(self.model))

    def put_to(self, user: User) -> Self:
        """Runs with a question that is put to this person."""
        return self.filter(step_runs__approval__people=user).distinct()

    def in_state(self, word: str) -> Self:
        return self.filter(state=word) if word else self

    def due(self, at: datetime) -> Self:
        """Return runs with work to do: a change, an ended or deleted job, an expired question, a poll that is due."""
        steps = self.model.step_runs.rel.related_model._default_manager.filter(state__in=["started", "asking"])
        ended = Q(state="started", job__state__in=FINAL)
        ran_out = Q(state="asking", approval__expires_at__lte=at)
        items = steps.model._default_manager.filter(run=OuterRef("run"), step=OuterRef("step"), item__gte=0)
        orphaned = Q(state="started", job=None, look_at=None) & ~Exists(items)  # its job was deleted
        woken = steps.filter(ended | ran_out | Q(look_at__lte=at) | orphaned).values("run")
        return self.filter(Q(is_due=True) | Q(pk__in=woken), state="running")


class StepRunQuerySet(OwnedQuerySet):
    """Steps of runs of one's own, and of pipelines that are shared with one."""

    owner_path = "run__owner"
    shared = ("pipelines.pipeline", "run__pipeline")


class StepApprovalQuerySet(OwnedQuerySet):
    owner_path = "step_run__run__owner"

    def visible_to(self, user: User) -> Self:
        """Questions of one's own runs, and those that are put to this person."""
        if not user.is_authenticated or user.sees_everything:
            return super().visible_to(user)
        return self.filter(Q(people=user) | Q(step_run__run__owner=user)).distinct()

    def for_list(self) -> Self:
        return self.select_related("step_run__run__pipeline").prefetch_related("people", "answers")

    def put_to(self, user: User) -> Self:
        """Those that this person may answer, or might have."""
        return self.filter(people=user)

    def answerable_by(self, user: User) -> Self:
        """Open questions that are put to this person."""
        return self.filter(step_run__state="asking", people=user)


class StepApprovalAnswerQuerySet(OwnedQuerySet):
    owner_path = "person"


class PipelineTriggerQuerySet(OwnedQuerySet):
    """What begins a pipeline is seen by who set it up and by who may change the pipeline.

    It names data and services that not everybody may know of who sees a public pipeline.
    """

    shared = ("pipelines.pipeline", "pipeline")

    def visible_to(self, user: User) -> Self:
        return self.editable_by(user)

    def editable_by(self, user: User) -> Self:
        """Also those of other people at pipelines of one's own."""
        return _of_pipeline(self, user, super().editable_by(user))


class FiringQuerySet(OwnedQuerySet):
    owner_path = "trigger__owner"
