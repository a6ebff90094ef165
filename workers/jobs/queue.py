"""Queue as people see it: who waits in the reader's clusters; the names of other people's jobs are withheld."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from accounts.models import User
from workers import kinds
from workers.count_classes import CLASSES
from workers.models import Job, VirtualCluster
from workers.states import JobState

SHOWN = 300
THEIR_LIMITS = frozenset({"user_cards", "user_cores", *(one.full for one in CLASSES.values())})
"""Codes of limits of a person."""


@dataclass(frozen=True)
class Entry:
    """One waiting job. `job` is None where the reader may not see it: then only its size and place show."""

    job: Job | None
    number: int
    kind: str
    icon: str
    owner: str
    cluster: str
    gpus: int
    cpus: float
    share: int
    priority: int
    urgent: bool
    position: int | None
    eta: datetime | None
    queued_at: datetime
    code: str
    sentence: str


def waiting(
    user: User, *, cluster: int | None = None, mine: bool = False, most: int = SHOWN
) -> tuple[list[Entry], int]:
    """(the first `most` waiting jobs of the reader's clusters in order, how many wait in all)."""
    clusters = VirtualCluster.objects.visible_to(user)
    rows = Job.objects.filter(state=JobState.QUEUED, cluster__in=list(clusters.values_list("pk", flat=True)))
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    if mine:
        rows = rows.filter(owner=user)
    ordered = rows.order_by(F("position").asc(nulls_last=True), "-priority", "queued_at", "pk")
    jobs = list(ordered.defer("spec", "message")[:most])
    owners = User.objects.in_bulk({job.owner_id for job in jobs})
    names = dict(clusters.values_list("pk", "name"))
    entries = [_entry(job, user, str(owners[job.owner_id]), names[job.cluster_id]) for job in jobs]
    return entries, len(jobs) if len(jobs) < most else rows.count()


def _entry(job: Job, user: User, owner: str, cluster: str) -> Entry:
    known: Any = job if job.owner_id == user.pk or user.sees_everything else None
    sentence = job.wait_sentence
    if known is None and job.wait_code in THEIR_LIMITS:
        sentence = ""  # how much somebody else uses of their own limit is their business
    return Entry(
        job=known,
        number=job.pk,
        kind=kinds.label_of(job.kind),
        icon=kinds.icon_of(job.kind),
        owner=owner,
        cluster=cluster,
        gpus=job.total_gpus,
        cpus=job.cpus,
        share=job.share,
        priority=job.priority,
        urgent=job.priority >= Job.URGENT,
        position=job.position,
        eta=job.eta,
        queued_at=job.queued_at,
        code=job.wait_code,
        sentence=sentence,
    )
