"""Jobs over their run time or paused for too long, and jobs whose cards do nothing, by the server's clock."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import OuterRef, Subquery

from accounts.services.notify import notify
from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core import kinds, run_time
from workers.core.models import Attempt, Job, JobEvent
from workers.core.states import LIVE, Desired, Event, JobState, Reason
from workers.jobs import actions, transitions

log = logging.getLogger(__name__)

SUPERVISORS_TURN = timedelta(seconds=120)
"""The supervisor ends what is over its time, and lets it leave a checkpoint; only where it does not, we do."""


_ENDING = (Desired.STOP, Desired.FINISH)


def over_time(moment: datetime) -> list[int]:
    """Ask jobs that ran for longer than they or their cluster allow to stop; return their numbers.

    Those whose time is nearly over are warned first.

    Paused time does not count, as it does not for the supervisor, which keeps the same limit on its node.
    """
    requested, near_end = [], _nearly_up(moment)
    if not near_end:
        return []
    for attempt in Attempt.objects.filter(pk__in=near_end).select_related("job__cluster", "job__owner"):
        job = attempt.job
        limit, left = run_time.runtime(job), run_time.left(job, attempt, moment)
        if limit is None or left is None:
            continue
        if left > -SUPERVISORS_TURN:
            if timedelta(0) < left <= warned_before(limit):
                _warn(attempt, limit)
            continue
        try:
            over = wording.message("job.reason", reason=Reason.MAX_RUNTIME)
            actions.stop(job, reason=Reason.MAX_RUNTIME, message=over)
            requested.append(job.pk)
        except DomainError as exc:
            log.info("job=%s over its time but not stopped: %s", job.pk, exc)
    return requested


def _nearly_up(moment: datetime) -> list[int]:
    """Live attempts whose time is nearly over if they were never paused. Read at every pass, so few columns only."""
    running = Attempt.objects.filter(ended_at=None, started_at__isnull=False, job__state__in=LIVE)
    running = running.exclude(job__desired__in=_ENDING)
    limited = running.exclude(job__max_runtime=None, job__cluster__max_runtime=None)
    spans = ("job__max_runtime", "job__cluster__max_runtime", "job__more_time")
    attempts = []
    for pk, started_at, own, cluster, more in limited.values_list("pk", "started_at", *spans):
        limit = run_time.span_of(own, cluster, more)
        if limit is not None and moment - started_at >= limit - warned_before(limit):
            attempts.append(pk)
    return attempts


def warned_before(limit: timedelta) -> timedelta:
    """How long before its time is over a job is warned: a tenth of it, at most an hour."""
    return min(limit / 10, timedelta(hours=1))


def _warn(attempt: Attempt, limit: timedelta) -> None:
    """Say once for each limit that the time is nearly over: in the event log, and to the owner."""
    job, limit_s = attempt.job, limit.total_seconds()
    with transaction.atomic():
        warnings = job.events.filter(attempt=attempt.number, event="time_nearly_up")
        if any(row.message.facts.get("limit_s") == limit_s for row in warnings):
            return
        transitions.note(job, "time_nearly_up", wording.message("job.time_nearly_up", limit_s=limit_s))
        notify(
            job.owner,
            "time",
            title=wording.message("news.time_nearly_up", job=job.name),
            text=wording.message("news.ask_for_time", limit_s=limit_s),
            url=kinds.url_of(job),
            key=f"time-{job.pk}-{attempt.number}-{limit_s / 3600:g}",
        )


def idle(moment: datetime) -> list[int]:
    """Warn owners of jobs whose cards do nothing, and later take the cards back; return whom.

    A job that may make room leaves a checkpoint and waits, paused, for its owner; any other is stopped. Kinds
    that hold cards in order to be ready (`idle_guard` false) are let be, and so is what is paused on purpose.
    """
    warn, end = timedelta(hours=env.IDLE_WARN_HOURS), timedelta(hours=env.IDLE_END_HOURS)
    if not warn and not end:
        return []
    first = min(span for span in (warn, end) if span)
    done = []
    rows = Attempt.objects.filter(ended_at=None, busy_at__lt=moment - first, job__state=JobState.RUNNING)
    rows = rows.filter(job__desired=Desired.RUN, job__gpus_per_node__gt=0, started_at__lt=moment - first)
    for attempt in rows.select_related("job__owner"):
        job, unused = attempt.job, moment - (attempt.busy_at or moment)
        if not kinds.idle_guarded(job.kind):
            continue
        warned = attempt.idle_warned_at is not None and attempt.idle_warned_at > (attempt.busy_at or moment)
        if end and unused >= end and (warned or not warn):
            message = wording.message("job.idle", idle_s=unused.total_seconds())
            try:
                if job.preemptible and kinds.capabilities_of(job).suspend:
                    actions.release_idle(job.pk, message=message)
                else:
                    actions.stop(job, reason=Reason.IDLE, message=message)
            except DomainError as exc:
                log.info("job=%s idle but not ended: %s", job.pk, exc)
                continue
            done.append(job.pk)
        elif warn and unused >= warn and not warned:
            _warn_idle(attempt, unused, moment, ends=bool(end))
            done.append(job.pk)
    return done


@transaction.atomic
def _warn_idle(attempt: Attempt, unused: timedelta, moment: datetime, *, ends: bool) -> None:
    job = attempt.job
    message = wording.message("job.idle_ends" if ends else "job.idle", idle_s=unused.total_seconds())
    Attempt.objects.filter(pk=attempt.pk).update(idle_warned_at=moment)
    transitions.note(job, "idle_warned", message)
    notify(
        job.owner,
        "idle",
        title=wording.message("news.idle", name=job.name),
        text=message,
        url=kinds.url_of(job),
        key=f"idle-{job.pk}-{attempt.number}-{attempt.busy_at:%Y%m%d%H%M}",
    )


def long_paused(moment: datetime) -> list[int]:
    """Warn owners of jobs that keep their devices paused, and later take the devices back; return whom.

    A job that can save gives them back and stays paused without them; any other is stopped. Nobody is ended sooner
    after the warning than it promised, also where a cluster's limit became shorter.
    """
    rows = Attempt.objects.filter(ended_at=None, job__state=JobState.PAUSED, job__desired=Desired.PAUSE)
    pauses = JobEvent.objects.filter(job=OuterRef("job"), attempt=OuterRef("number"), event=Event.PAUSED)
    rows = rows.exclude(job__cluster__max_pause=None).annotate(since=Subquery(pauses.order_by("-pk").values("at")[:1]))
    done = []
    for attempt in rows.filter(since__isnull=False).select_related("job__cluster", "job__owner"):
        job, limit, since = attempt.job, attempt.job.cluster.max_pause, attempt.since
        if limit is None or moment - since < limit - warned_before(limit):
            continue
        warning = job.events.filter(attempt=attempt.number, event="pause_nearly_over", at__gte=since).last()
        saves = kinds.capabilities_of(job).suspend
        if warning is None:
            _warn_paused(attempt, limit, since, saves=saves)
            done.append(job.pk)
            continue
        if moment < max(since + limit, warning.at + warned_before(limit)):
            continue
        message = wording.message("job.pause_over", limit_s=limit.total_seconds())
        try:
            if saves:
                actions.release_paused(job.pk, message=message)
            else:
                actions.stop(job, reason=Reason.PAUSE_OVER, message=message)
            done.append(job.pk)
        except DomainError as exc:
            log.info("job=%s paused for too long but not ended: %s", job.pk, exc)
    return done


@transaction.atomic
def _warn_paused(attempt: Attempt, limit: timedelta, since: datetime, *, saves: bool) -> None:
    job = attempt.job
    code = "job.pause_nearly_over_saves" if saves else "job.pause_nearly_over"
    message = wording.message(code, limit_s=limit.total_seconds())
    Job.objects.filter(pk=job.pk, state=JobState.PAUSED).update(message=message)
    transitions.note(job, "pause_nearly_over", message)
    notify(
        job.owner,
        "idle",
        title=wording.message("news.paused", name=job.name),
        text=message,
        url=kinds.url_of(job),
        key=f"paused-{job.pk}-{attempt.number}-{since:%Y%m%d%H%M%S}",
    )
