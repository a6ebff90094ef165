"""Environments that nobody uses give their cards to whoever waits: their owners are warned, then the planner may ask.

What is judged is the same idleness that stops an environment much later. Whoever comes back before its time keeps the
cards; one that gave them waits, paused, for its owner, with its files and packages.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from accounts.services.notify import notify
from aiplatform import env
from aiplatform.lib import wording
from training.environments.models import Environment
from workers.core import held_back, kinds, pins
from workers.core.clock import now
from workers.core.models import Allocation, Job
from workers.core.states import Desired, JobState
from workers.jobs import transitions

MAX_WARNING = timedelta(minutes=15)


def idle_for(environment: Environment, moment: datetime) -> timedelta:
    """Time without activity."""
    return max(moment - environment.idle_since, timedelta(0)) if environment.idle_since else timedelta(0)


def limit() -> timedelta | None:
    """Return the idle time after which a workspace releases its devices to waiting jobs; None for never."""
    minutes = env.ENVIRONMENT_GIVES_CARDS_MIN
    return timedelta(minutes=minutes) if minutes > 0 else None


def judge(environment: Environment, moment: datetime) -> None:
    """Warn the owner of an idle workspace whose devices are awaited; cancel the release once they are not."""
    span, job = limit(), environment.job
    if environment.gives_at is not None:
        if span is None or not _is_awaited(environment, moment):
            environment.gives_at = None
            environment.save(update_fields=["gives_at"])
        return
    if span is None or environment.idle_since is None:
        return
    before = min(span / 4, MAX_WARNING)
    if job.desired != Desired.RUN or not job.gpus_per_node or idle_for(environment, moment) < span - before:
        return
    if _is_awaited(environment, moment):
        _warn(environment, max(moment + before, environment.idle_since + span), moment)


def due(jobs: Collection[int]) -> set[int]:
    """Return those of these workspaces whose devices are to be released to waiting jobs."""
    return set(Environment.objects.filter(pk__in=jobs, gives_at__lte=now()).values_list("pk", flat=True))


def _is_awaited(environment: Environment, moment: datetime) -> bool:
    """Return whether a job only waits for devices of this kind, on any node or on this one."""
    job = environment.job
    waiting = Job.objects.filter(state=JobState.QUEUED, gpus_per_node__gt=0, device_kind=job.device_kind)
    candidates = set(waiting.values_list("pk", flat=True))
    if not candidates:
        return False
    candidates -= held_back.reasons(moment).keys()
    if pinned := {pk: name for pk, name in pins.of_waiting().items() if pk in candidates}:
        held = Allocation.objects.filter(attempt__job=job, released_at=None)
        here = set(held.values_list("node__name", flat=True))
        candidates -= {pk for pk, name in pinned.items() if name not in here}
    return bool(candidates)


@transaction.atomic
def _warn(environment: Environment, at: datetime, moment: datetime) -> None:
    job = environment.job
    environment.gives_at = at
    environment.save(update_fields=["gives_at"])
    idle_s = idle_for(environment, moment).total_seconds()
    transitions.note(job, "idle_warned", wording.message("environment.gives_cards", idle_s=idle_s))
    notify(
        job.owner,
        "idle",
        title=wording.message("news.environment_idle", name=job.name),
        text=wording.message("news.environment_gives", minutes=max(1, round((at - moment).total_seconds() / 60))),
        url=kinds.url_of(job),
        key=f"environment-cards-{job.pk}-{environment.attempt}-{at:%Y%m%d%H%M%S}",
    )
