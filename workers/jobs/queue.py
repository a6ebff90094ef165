"""Queue as people see it: who waits in the reader's clusters; the names of other people's jobs are withheld."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.utils.translation import ngettext

from accounts.models import User
from aiplatform.lib import units
from workers.core import kinds
from workers.core.count_classes import CLASSES
from workers.core.models import Job, VirtualCluster
from workers.core.states import JobState

SHOWN = 300
THEIR_LIMITS = frozenset({"user_cards", "user_cores", *(job_class.full for job_class in CLASSES.values())})
"""Codes of limits of a person."""
READ = (
    "kind", "name", "owner", "cluster", "state", "nodes", "gpus_per_node", "cpus", "share", "priority", "position",
    "eta", "queued_at", "wait_code", "wait_args",
)  # fmt: skip
"""Columns that an entry is made of."""


@dataclass(frozen=True)
class Entry:
    """One waiting job. `job` is None where the reader may not see it: then only its size and place show."""

    job: Job | None
    number: int
    kind: str
    icon: str
    owner: User
    cluster: str
    asks_for: str
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
    user: User, *, cluster: int | None = None, mine: bool = False, limit: int = SHOWN
) -> tuple[list[Entry], int]:
    """(the first `limit` waiting jobs of the reader's clusters in order, the number of all waiting jobs)."""
    clusters = dict(VirtualCluster.objects.visible_to(user).values_list("pk", "name"))
    rows = Job.objects.filter(state=JobState.QUEUED, cluster__in=list(clusters))
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    if mine:
        rows = rows.filter(owner=user)
    ordered = rows.order_by(F("position").asc(nulls_last=True), "-priority", "queued_at", "pk")
    jobs = list(ordered.only(*READ)[:limit])
    owners = User.objects.filter(pk__in={job.owner_id for job in jobs}).only("username", "nickname")
    labels = _Labels(
        owners={person.pk: person for person in owners},
        clusters=clusters,
        kinds={name: (kinds.label_of(name), kinds.icon_of(name)) for name in {job.kind for job in jobs}},
        cards={count: _cards(count) for count in {job.total_gpus for job in jobs}},
    )
    entries = [_entry(job, labels, is_visible=job.owner_id == user.pk or user.sees_everything) for job in jobs]
    return entries, len(jobs) if len(jobs) < limit else rows.count()


@dataclass(frozen=True)
class _Labels:
    """What many entries say alike, made once: by key, (label, icon) by kind, "2 GPUs" by number."""

    owners: dict[int, User]
    clusters: dict[int, str]
    kinds: dict[str, tuple[str, str]]
    cards: dict[int, str]


def _cards(count: int) -> str:
    return ngettext("%(cards)s GPU", "%(cards)s GPUs", count) % {"cards": count}


def _entry(job: Job, labels: _Labels, *, is_visible: bool) -> Entry:
    sentence = job.wait_sentence
    label, icon = labels.kinds[job.kind]
    if not is_visible and job.wait_code in THEIR_LIMITS:
        sentence = ""  # how much somebody else uses of their own limit is their business
    return Entry(
        job=job if is_visible else None,
        number=job.pk,
        kind=label,
        icon=icon,
        owner=labels.owners[job.owner_id],
        cluster=labels.clusters[job.cluster_id],
        asks_for=labels.cards[job.total_gpus] if job.total_gpus else f"{units.number(round(job.cpus, 1))} × CPU",
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
