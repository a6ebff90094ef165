"""Reasons that hold a queued job back, whatever is free: pauses, other jobs that come first, limits of
arrays, approvals, and the machine it belongs to.

The one place of them: planner input, the queue, job pages and alarms read what stands here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Q

from workers.core import kinds, pins
from workers.core.models import Approval, Dependency, Job, JobArray, Node
from workers.core.states import COMPLETED, FINAL, LIVE, Desired, JobState

_DONE = Q(needs=Dependency.Needs.SUCCESS, on__state__in=COMPLETED) | Q(needs=Dependency.Needs.END, on__state__in=FINAL)
_AWAY: dict[str, str] = {
    Node.State.DRAINING: "machine_drained",
    Node.State.SUSPECT: "machine_silent",
    Node.State.UNREACHABLE: "machine_silent",
    Node.State.LOST: "machine_silent",
    Node.State.REMOVED: "machine_removed",
}


@dataclass(frozen=True)
class Held:
    """Why a queued job may not start now: the code of a sentence of `wait_reasons`, and its figures."""

    code: str
    args: Mapping[str, int | str] = field(default_factory=dict)


def reasons(moment: datetime) -> dict[int, Held]:
    """Queued jobs that may not start at `moment`, by number; of several reasons the one that a user can act on."""
    held_jobs = dict.fromkeys(Approval.objects.holding().values_list("job", flat=True), Held("unapproved"))
    for job, held in _paused(moment).items():
        held_jobs.setdefault(job, held)
    for job, held in _following().items():
        held_jobs.setdefault(job, held)
    for job, held in _machine_away().items():
        held_jobs.setdefault(job, held)
    _limit_arrays(held_jobs)
    return held_jobs


def holding(jobs: Collection[int]) -> set[int]:
    """Those of these jobs that may not start now for an approval or other jobs that come first."""
    unapproved = Approval.objects.holding().filter(job__in=jobs).values_list("job", flat=True)
    return {*unapproved, *Dependency.objects.filter(job__in=jobs).exclude(_DONE).values_list("job", flat=True)}


def _paused(moment: datetime) -> dict[int, Held]:
    queued = Job.objects.filter(state=JobState.QUEUED)
    paused = queued.filter(~Q(desired=Desired.RUN) | Q(not_before__gt=moment))
    return {
        pk: Held("paused" if desired != Desired.RUN else "backoff")
        for pk, desired in paused.values_list("pk", "desired")
    }


def _following() -> dict[int, Held]:
    """Jobs that follow others which have not come so far."""
    rows = Dependency.objects.filter(job__state=JobState.QUEUED)
    first: dict[int, list[tuple[int, str, str, str]]] = defaultdict(list)
    columns = ("job_id", "on_id", "needs", "on__kind", "on__name")
    for job, on, needs, kind, name in rows.exclude(_DONE).order_by("pk").values_list(*columns):
        first[job].append((on, needs, kind, name))
    return {job: _held_by(others) for job, others in first.items()}


def _held_by(others: list[tuple[int, str, str, str]]) -> Held:
    on, needs, kind, name = others[0]
    if kinds.builds_image(kind):
        return Held("waits_for_image", {"job": on, "image": name})
    if len(others) > 1:
        return Held("after_many", {"job": on, "count": len(others)})
    return Held("after_success" if needs == Dependency.Needs.SUCCESS else "after_end", {"job": on})


def by_machine(names: Collection[str]) -> dict[str, Held]:
    """Reasons for jobs that are bound to one of these nodes; nodes that accept work are left out."""
    if not names:
        return {}
    states = dict(Node.objects.filter(name__in=names).values_list("name", "state"))
    return {
        name: Held(_AWAY[state], {"node": name})
        for name in names
        if (state := states.get(name, Node.State.REMOVED)) in _AWAY
    }


def _machine_away() -> dict[int, Held]:
    """Jobs that may start on one machine alone, which takes no work now."""
    pinned = pins.of_waiting()
    away = by_machine(set(pinned.values()))
    return {job: away[name] for job, name in pinned.items() if name in away}


def _limit_arrays(held_jobs: dict[int, Held]) -> None:
    """Hold back the jobs of an array beyond the number that may run at a time; lower indices go first."""
    waiting = Job.objects.filter(state=JobState.QUEUED, array__at_once__isnull=False)
    rows = list(waiting.order_by("array", "array_index").values_list("pk", "array_id"))
    arrays = {array for _job, array in rows}
    limits = JobArray.objects.filter(pk__in=arrays).annotate(live=Count("jobs", filter=Q(jobs__state__in=LIVE)))
    room = {pk: (limit, limit - live) for pk, limit, live in limits.values_list("pk", "at_once", "live")}
    for job, array in rows:
        if job in held_jobs:
            continue
        limit, left = room[array]
        if left < 1:
            held_jobs[job] = Held("array_full", {"limit": limit})
        room[array] = (limit, left - 1)
