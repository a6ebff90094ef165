"""Runs and firings that are old are deleted; what still serves somebody stays.

A run stays while it goes on, among the newest of its pipeline, as the newest one that ended well (steps count from it),
and while a run that stays took results of it. Earlier results are lost with the run that made them. A firing stays as
long as what it answers could come again.
"""

from __future__ import annotations

from datetime import timedelta

from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, Subquery

from aiplatform import env
from inference.pipelines.models import Firing, PipelineRun, PipelineTrigger, StepRun
from workers.core.clock import now

EVERY_S = 600
MAX_RUNS = 20  # runs of one look: each may have thousands of rows
MAX_FIRINGS = 1000  # of one trigger in one look
FIRING_RETENTION = timedelta(days=30)  # repeated deliveries arrive within days
NEWEST_FIRINGS = 50  # of a trigger stay, for its page
PRUNED = "pipelines-pruned"


def sweep() -> None:
    """Delete some of what is old; at most every ten minutes."""
    if cache.add(PRUNED, 1, EVERY_S):
        prune()


def prune() -> int:
    """Delete some of what is old; returns how many runs."""
    deleted = 0
    if env.PIPELINE_RUN_DAYS > 0:
        for number in _old_runs():
            deleted += _delete(number)
    for trigger in PipelineTrigger.objects.order_by("pk"):
        numbers = list(trigger.firings.order_by("-pk").values_list("pk", flat=True)[NEWEST_FIRINGS:][:MAX_FIRINGS])
        old = Firing.objects.filter(pk__in=numbers, at__lt=now() - FIRING_RETENTION, at__lte=trigger.seen_at)
        old.delete()
    return deleted


def _old_runs() -> list[int]:
    """Runs that may go, the oldest first."""
    same = PipelineRun.objects.filter(pipeline=OuterRef("pipeline")).order_by().values("pipeline")
    well = same.filter(state=PipelineRun.State.OK)
    serves = StepRun.objects.filter(cached_from__run=OuterRef("pk")).exclude(run=OuterRef("pk"))
    rows = PipelineRun.objects.exclude(state=PipelineRun.State.RUNNING).annotate(
        newest=Subquery(same.annotate(most=Max("number")).values("most")),
        newest_well=Subquery(well.annotate(most=Max("number")).values("most")),
    )
    rows = rows.filter(
        Q(newest_well=None) | ~Q(number=F("newest_well")), ended_at__lt=now() - timedelta(days=env.PIPELINE_RUN_DAYS),
        number__lte=F("newest") - max(1, env.PIPELINE_RUNS_KEPT),  # the newest gives the next its number
    )  # fmt: skip
    return list(rows.exclude(Exists(serves)).order_by("ended_at").values_list("pk", flat=True)[:MAX_RUNS])


@transaction.atomic
def _delete(number: int) -> int:
    """Delete one run, unless its steps are being repeated."""
    run = PipelineRun.objects.select_for_update().filter(pk=number).exclude(state=PipelineRun.State.RUNNING).first()
    if run is None:
        return 0
    run.delete()
    return 1
