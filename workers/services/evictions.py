"""Moving unwilling work off its cards into its machine's memory, and back onto the same cards.

Off everywhere until an operator allows it on a machine, and that is refused until the machine's driver can and a proof
on one of its cards (`manage.py prove_eviction`) has shown that it does. The planner decides who leaves and who comes
back; the supervisor does it (workers/supervisor/offcard.py).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib.errors import DomainError
from workers import waking
from workers.clock import now
from workers.models import Allocation, Attempt, Device, Job, Node
from workers.models.nodes import SHARES_PER_DEVICE
from workers.services import lifecycle, transitions
from workers.states import Desired, Event, IllegalMove, JobState, Reason

MARGIN_MIB, MARGIN_PART = 2048, 10
"""Host memory that evictions leave alone: two GiB, or a tenth where that is more."""
FRESH = timedelta(seconds=60)
SETTLES = timedelta(seconds=15)
"""So long after an eviction a machine's figure may not show it yet."""
CANNOT = {
    "unknown": gettext_lazy("Its agent has not said yet whether its driver can."),
    "no_card": gettext_lazy("It has no NVIDIA card."),
    "simulated": gettext_lazy("Its cards are simulated."),
    "no_driver": gettext_lazy("Its driver cannot: %(detail)s"),
    "container": gettext_lazy("Its jobs run in containers, whose processes are not moved."),
    "mps": gettext_lazy("Its cards are shared by CUDA MPS, whose clients cannot be moved."),
    "little_memory": gettext_lazy("Its memory (%(detail)s) cannot take a card's."),
}


class NotProven(DomainError):
    """The machine cannot evict, or nobody has seen yet that it can."""

    code = "eviction_not_proven"


def obstacle(node: Node) -> str:
    """Why no work may be evicted on this machine, apart from an operator's wish; empty where it may."""
    can, proof = node.evict_can, node.evict_proof
    code = can.get("code", "unknown") if can else "unknown"
    if code:
        return str(CANNOT.get(code, CANNOT["no_driver"])) % {"detail": can.get("detail", "")}
    if not proof:
        return _("Not proven on its driver %(driver)s yet.") % {"driver": can["driver"]}
    if not proof.get("ok"):
        return _("The proof failed: %(why)s") % {"why": proof.get("sentence", "")}
    if (proof.get("driver"), proof.get("tier")) != (can["driver"], can["tier"]):
        facts = {"old": proof.get("driver"), "now": can["driver"]}
        return _("Proven on driver %(old)s; driver, now %(now)s, or isolation have changed since.") % facts
    return ""


def in_effect(node: Node) -> bool:
    """Whether work may be evicted on this machine now."""
    return node.evicts and not obstacle(node)


@transaction.atomic
def allow(node: Node, *, by: User | None = None) -> Node:
    """Let the scheduler evict work on a machine.

    Raises:
        NotProven: the sentence says what is missing.
    """
    why = obstacle(node)
    if why:
        raise NotProven(why)
    if Node.objects.filter(pk=node.pk, evicts=False).update(evicts=True):
        lifecycle.record(node, "evictions_allowed", _("Work may be evicted here."), by=by)
        audit.record(by, "node_evicts", node)
        waking.ring()
    node.refresh_from_db()
    return node


@transaction.atomic
def forbid(node: Node, *, by: User | None = None) -> Node:
    """Evict no further work on a machine; what is away comes back as before."""
    if Node.objects.filter(pk=node.pk, evicts=True).update(evicts=False):
        lifecycle.record(node, "evictions_forbidden", _("No work is evicted here any more."), by=by)
        audit.record(by, "node_evicts_not", node)
    node.refresh_from_db()
    return node


def keep_proof(node: Node, proof: dict[str, Any]) -> None:
    """Note how the proof on one of the machine's cards went; one that failed ends evictions there.

    Args:
        proof: {"driver", "tier", "ok", "sentence", "at", "seconds"}.
    """
    Node.objects.filter(pk=node.pk).update(evict_proof=proof)
    lifecycle.record(node, "eviction_proof", proof["sentence"])


def spare_mib(moment: datetime) -> dict[int, int]:
    """Host memory in MiB that card memory of evicted work may take, by node; machines without any are left out.

    Two sums must both have room, less a margin: what the machine measures free, and what is left of its memory when
    every job took all it may. Where the figures are old there is none.
    """
    nodes = [node for node in Node.objects.filter(evicts=True, state=Node.State.LIVE) if in_effect(node)]
    if not nodes:
        return {}
    bound: dict[int, int] = defaultdict(int)
    moved: dict[int, int] = defaultdict(int)
    unseen: dict[int, int] = defaultdict(int)
    seen_at = {node.pk: parse_datetime(str(node.facts.get("at", ""))) for node in nodes}
    live = Attempt.objects.filter(ended_at=None, allocations__node__in=nodes, allocations__released_at=None)
    for attempt in live.distinct().select_related("job"):
        home, mib = card_memory(attempt)
        bound[home] += attempt.job.memory_mib
        if attempt.evicted_at is None and attempt.job.desired != Desired.EVICT:
            continue
        moved[home] += mib
        at = seen_at.get(home)
        if attempt.evicted_at is None or at is None or attempt.evicted_at > at - SETTLES:
            unseen[home] += mib
    found = {}
    for node in nodes:
        total, used, at = node.facts.get("memory_total_mib"), node.facts.get("memory_used_mib"), seen_at[node.pk]
        if not total or used is None or at is None or moment - at > FRESH:
            continue
        measured = total - used - unseen[node.pk]
        promised = total - bound[node.pk] - moved[node.pk]
        spare = min(measured, promised) - max(MARGIN_MIB, total // MARGIN_PART)
        if spare > 0:
            found[node.pk] = int(spare)
    return found


def card_memory(attempt: Attempt) -> tuple[int, int]:
    """(node, MiB) that an attempt on one machine may hold of its cards."""
    rows = attempt.allocations.filter(released_at=None).exclude(device__kind=Device.Kind.CPU)
    held = list(rows.values_list("node_id", "device__memory_mib", "share"))
    if not held:
        return 0, 0
    return held[0][0], sum(-(-memory * share // SHARES_PER_DEVICE) for _node, memory, share in held)


@transaction.atomic
def evict(job_id: int, *, for_job: int, why: str) -> Job:
    """Ask that a running job leaves its cards for a while.

    Raises:
        IllegalMove: it does not run, runs too short, or its machine does not allow it or lacks the memory.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    attempt = job.attempts.filter(number=job.attempt_number, ended_at=None).first()
    if attempt is None or job.state != JobState.RUNNING or job.desired != Desired.RUN or attempt.kept_why:
        raise IllegalMove(_("Only running work leaves its cards."), state=job.state, verb="evict")
    begun = attempt.back_at or attempt.started_at or attempt.assigned_at
    if now() - begun < timedelta(seconds=env.MIN_RUN_S):
        raise IllegalMove(_("It has not run for long enough to make room."), state=job.state, verb="evict")
    node, mib = card_memory(attempt)
    if job.nodes > 1 or not mib or mib > spare_mib(now()).get(node, 0):
        raise IllegalMove(_("Its machine has no memory for it now."), state=job.state, verb="evict")
    said = _WHY[why] % {"job": for_job}
    return transitions.ask_for_room(job, Desired.EVICT, said, makes_room_for=for_job)


_WHY = {
    "urgent": gettext_noop("Leaves its cards for a while for job %(job)s, which is urgent."),
    "guarantee": gettext_noop("Leaves its cards for a while: job %(job)s needs them, in whose cluster they belong."),
    "window": gettext_noop("Leaves its cards for a while for job %(job)s, for which these machines are kept now."),
    "turn": gettext_noop("Leaves its cards for a while for job %(job)s, which waited longer."),
}


@transaction.atomic
def left(attempt: Attempt) -> Job:
    """Its card memory is on the host: give its cards to others, and keep its place on them.

    Raises:
        StaleReport, IllegalMove: it was moved meanwhile.
    """
    sentence = _("Its cards serve more important work; its state waits in the machine's memory and goes on by itself.")
    return transitions.move(
        attempt.job_id, Event.EVICTED, attempt=attempt.number, reason=Reason.EVICTED, sentence=sentence
    )


@transaction.atomic
def stayed(attempt: Attempt, why: str) -> Job:
    """It could not leave its cards: it runs on, and is not asked again in this attempt."""
    seen = Job.objects.filter(pk=attempt.job_id, desired=Desired.EVICT, attempt_number=attempt.number)
    if seen.update(desired=Desired.RUN, makes_room_for=None, sentence=""):
        Attempt.objects.filter(pk=attempt.pk).update(kept_why=why[:300] or "?")
        job = Job.objects.get(pk=attempt.job_id)
        transitions.note(job, "stayed", _("Stays on its cards: %(why)s") % {"why": why})
        waking.ring()
    return Job.objects.get(pk=attempt.job_id)


@transaction.atomic
def come_back(job_id: int) -> Job:
    """Give an evicted job its cards again and let it go on.

    Raises:
        IllegalMove: it is not away, or its cards are not free any more; nothing was written.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    attempt = job.attempts.filter(number=job.attempt_number, ended_at=None, evicted_at__isnull=False).first()
    if attempt is None or attempt.evicted_at is None or job.state != JobState.FROZEN or job.desired != Desired.EVICT:
        raise IllegalMove(_("It is not off its cards."), state=job.state, verb="come_back")
    held = Allocation.objects.filter(attempt=attempt, released_at=None)
    for device, share in held.values_list("device_id", "share"):
        free = Device.objects.filter(pk=device, health=Device.Health.OK, used__lte=F("capacity") - share)
        if not free.update(used=F("used") + share):
            raise IllegalMove(_("Its cards are not free."), state=job.state, verb="come_back")
    moment = now()
    away_s = attempt.away_s + (moment - attempt.evicted_at).total_seconds()
    mine = Attempt.objects.filter(pk=attempt.pk, evicted_at=attempt.evicted_at, ended_at=None)
    wish = Job.objects.filter(pk=job.pk, state=job.state, desired=Desired.EVICT, attempt_number=job.attempt_number)
    if not mine.update(evicted_at=None, back_at=moment, away_s=away_s) or not wish.update(desired=Desired.RUN):
        raise transitions.StaleReport(_("%(job)s was moved by someone else.") % {"job": job})
    transitions.note(job, "coming_back", _("Its cards are free again; it comes back to them."))
    return Job.objects.get(pk=job.pk)
