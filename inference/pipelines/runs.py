"""Runs: begin, cancel, retry from a step, skip a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F, Max
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from inference.pipelines import approvals, checks, graph, inlining
from inference.pipelines.advance import STEP_ITEM, Row, State, retry_from
from inference.pipelines.models import Pipeline, PipelineRun, PipelineVersion, StepRun
from workers.core.clock import now

LIMIT = 16
MAX_AT_ONCE = 500
MANUAL = {"by": "manual"}


class NotNow(DomainError, code="not_now"):
    """The run is not in a state that allows this."""


def start(
    *,
    user: User,
    version: PipelineVersion,
    parameters: Mapping[str, Any] | None = None,
    trigger: Mapping[str, Any] = MANUAL,
    limit: int = LIMIT,
    fail_fast: bool = False,
    use_cache: bool = True,
) -> PipelineRun:
    """Start a run as this user.

    Raises:
        Invalid: see `checks.check`.
    """
    if not 1 <= limit <= MAX_AT_ONCE:
        raise Invalid(_("1 to %(most)s steps can run in parallel.") % {"most": MAX_AT_ONCE}, field="limit")
    spec = graph.parse(version.spec)
    params = inlining.parameters_of(spec, parameters or {})
    # who begins a run by hand takes the word of the version's author; a trigger takes its owner's alone, see `firing`
    author = version.created_by_id if trigger.get("by") == MANUAL["by"] else None
    authors = frozenset[int]() if author is None else frozenset([author])
    checks.check(spec, user, params, within=version.pipeline_id, authors=authors)
    spec = inlining.inline(spec, user, params, within=version.pipeline_id, authors=authors)
    with transaction.atomic():
        pipeline = Pipeline.objects.select_for_update().get(pk=version.pipeline_id)
        number = (pipeline.runs.aggregate(last=Max("number"))["last"] or 0) + 1
        run = PipelineRun.objects.create(
            pipeline=pipeline, version=version, number=number, owner=user, spec=graph.canonical(spec),
            parameters=params, trigger=dict(trigger), limit=limit, fail_fast=fail_fast, use_cache=use_cache,
        )  # fmt: skip
        StepRun.objects.bulk_create(StepRun(run=run, step=key) for key in spec.steps)
        approvals.wake(run.pk)
    return run


@transaction.atomic
def cancel(run: PipelineRun) -> PipelineRun:
    """Begin nothing more, and stop what is under way.

    Raises:
        NotNow: it is over.
    """
    fresh = _held(run)
    if fresh.is_over:
        raise NotNow(_("The study has ended."))
    PipelineRun.objects.filter(pk=run.pk).update(cancel=True, revision=F("revision") + 1)
    approvals.wake(run.pk)
    return _fresh(run)


@transaction.atomic
def retry(run: PipelineRun, step: str, *, by: User, use_cache: bool = True) -> PipelineRun:
    """Repeat a step, all steps after it, and what was cancelled; earlier attempts are kept as history.

    Raises:
        NotAllowed: the run has another owner, and its steps run as that user.
        Invalid: there is no such step.
        NotNow: some of it is under way.
    """
    current = _held(run)
    if current.owner_id != by.pk and not by.sees_everything:
        raise NotAllowed(
            _("Steps run with the permissions of the run's owner, who alone can repeat them. Start a run of your own.")
        )
    spec = graph.parse(current.spec, of_run=True)
    _check_step(spec, step)
    rows = [
        Row(item.step, item.item, item.attempt, State(item.state))
        for item in current.step_runs.defer("outputs", "kept")
    ]
    actions = retry_from(spec.steps, rows, inlining.entry_of(spec, step))
    if not actions:
        raise NotNow(_("This step, or a later one, is in progress. Wait until it ends, or cancel the run."))
    StepRun.objects.bulk_create(
        StepRun(run=current, step=item.step, item=STEP_ITEM, attempt=item.attempt) for item in actions
    )
    again = {item.step for item in actions}
    PipelineRun.objects.filter(pk=run.pk).update(
        state=PipelineRun.State.RUNNING, message={}, ended_at=None, cancel=False, use_cache=use_cache,
        idle_s=current.idle_s + (max(0.0, (now() - current.ended_at).total_seconds()) if current.ended_at else 0.0),
        skip=[name for name in current.skip if name not in again], revision=F("revision") + 1,
    )  # fmt: skip
    approvals.wake(run.pk)
    return _fresh(run)


@transaction.atomic
def skip(run: PipelineRun, step: str) -> PipelineRun:
    """Leave a step out that has not begun, or asks people; what needs it is skipped as well.

    Raises:
        Invalid: there is no such step.
        NotNow: it has begun, or is over.
    """
    fresh = _held(run)
    spec = graph.parse(fresh.spec, of_run=True)
    _check_step(spec, step)
    step = inlining.entry_of(spec, step)
    newest = fresh.step_runs.filter(step=step, item=STEP_ITEM).order_by("-attempt").first()
    if fresh.is_over or newest is None or newest.state not in (StepRun.State.WAITING, StepRun.State.ASKING):
        raise NotNow(_("Only a waiting step can be skipped."))
    skipped = sorted({*fresh.skip, step})
    PipelineRun.objects.filter(pk=run.pk).update(skip=skipped, revision=F("revision") + 1)
    approvals.wake(run.pk)
    return _fresh(run)


def _check_step(spec: graph.Spec, step: str) -> None:
    if step not in spec.steps:
        raise Invalid(_("This run has no step “%(step)s”.") % {"step": step[:80]}, field="step")


def _held(run: PipelineRun) -> PipelineRun:
    return PipelineRun.objects.select_for_update().get(pk=run.pk)


def _fresh(run: PipelineRun) -> PipelineRun:
    run.refresh_from_db()
    return run
