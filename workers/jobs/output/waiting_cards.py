"""Whether the cards of a running job mostly wait, and what for, by what its curves of the last minutes say."""

from __future__ import annotations

from datetime import datetime, timedelta
from statistics import mean

from aiplatform.lib.wording import Message, message
from workers.core import kinds
from workers.core.clock import now
from workers.core.models import Attempt, Curve, Job
from workers.jobs.output import metrics

IDLE_PERCENT, IDLE_SPAN, IDLE_LOOKS = 25.0, timedelta(minutes=10), 20
BUSY_CORES = 0.85
"""Share of its cores at which they are what holds it up."""
WAITING_SHARE = 0.3
SHARES = ("loader_wait", "train/loader_wait")
"""Curves of how much of a step is waiting for data, from 0 to 1."""
OF_A_STEP = (("train/data_ms", "train/step_ms"), ("data_time", "time"), ("data_time", "iter_time"))
"""Curves of waiting for data and of a whole step, in one unit: of presets and SDK, MMEngine, and many own scripts."""


def diagnose(job: Job) -> Message:
    """Message for the owner of a job with idle devices; empty where they compute, are unknown, or may be idle."""
    if not kinds.idle_guarded(job.kind):
        return Message()
    since = now() - IDLE_SPAN
    attempt = job.attempts.filter(number=job.attempt_number, started_at__lte=since).first()
    percent = _percent(attempt, since) if attempt else None
    if attempt is None or percent is None or percent >= IDLE_PERCENT:
        return Message()
    share = _loader_share(attempt, since)
    if share is not None and share >= WAITING_SHARE:
        return message("cause.cards_wait_for_loader", percent=round(percent), share=round(100 * share))
    busy = _busy_cores(attempt, job, since)
    if busy is not None and busy >= BUSY_CORES:
        return message("cause.cards_wait_for_cores", percent=round(percent), busy=round(100 * busy))
    return message("cause.cards_idle", percent=round(percent))


def _percent(attempt: Attempt, since: datetime) -> float | None:
    """How much its cards computed; None of too few looks."""
    used = Curve.objects.filter(attempt=attempt, key__startswith="system/", key__endswith="_util")
    points = metrics.recent(attempt, used.values_list("key", flat=True), since).values()
    looks = {moment for each in points for moment in each["at"].tolist()}
    values = [value for each in points for value in each["value"].tolist()]
    return mean(values) if len(looks) >= IDLE_LOOKS else None


def _loader_share(attempt: Attempt, since: datetime) -> float | None:
    """Share of a step that waits for data; None where it is not reported."""
    names = {*SHARES, *(name for pair in OF_A_STEP for name in pair)}
    means = {
        key: mean(points["value"].tolist())
        for key, points in metrics.recent(attempt, names, since).items()
        if len(points)
    }
    shares = [means[key] for key in SHARES if key in means]
    shares += [means[wait] / means[step] for wait, step in OF_A_STEP if wait in means and means.get(step, 0) > 0]
    return min(1.0, shares[0]) if shares else None


def _busy_cores(attempt: Attempt, job: Job, since: datetime) -> float | None:
    """Which share of its cores its processes keep busy; None where that is not known."""
    points = metrics.recent(attempt, ["system/cpu"], since).get("system/cpu")
    if points is None or len(points) < IDLE_LOOKS or not job.cpus:
        return None
    return mean(points["value"].tolist()) / (100 * float(job.cpus))
