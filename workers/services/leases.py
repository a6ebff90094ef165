"""One acting process of a kind: a row with holder and epoch. Losing it is noticed at the next write."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F

from aiplatform import env
from workers.clock import now
from workers.models import Lease

TTL = timedelta(seconds=10)
"""A holder silent for longer may be replaced."""


def longest_gap(lost_s: float) -> timedelta:
    """How long nobody may act before what was not seen meanwhile says nothing.

    Args:
        lost_s: silent for so long a node is given up; it keeps half of that to be heard again.
    """
    return timedelta(seconds=min(30.0, lost_s / 2))


GAP = longest_gap(env.NODE_LOST_S)


def watched(name: str, moment: datetime) -> timedelta:
    """For how long somebody has acted without a gap."""
    since = Lease.objects.filter(name=name).values_list("watched_since", flat=True).first()
    return moment - since if since else timedelta(0)


def take(name: str, holder: str) -> int | None:
    """Become or stay the holder; return the epoch, or None while somebody else holds it."""
    moment = now()
    Lease.objects.filter(name=name, renewed_at__lt=moment - GAP).update(watched_since=moment)
    mine = Lease.objects.filter(name=name, holder=holder)
    if mine.update(renewed_at=moment):
        return mine.values_list("epoch", flat=True).first()
    try:
        with transaction.atomic():
            if Lease.objects.get_or_create(name=name, defaults={"holder": holder, "epoch": 1})[1]:
                return 1
    except IntegrityError:  # another process was faster
        return None
    free = Lease.objects.filter(name=name, renewed_at__lt=moment - TTL)
    if not free.update(holder=holder, epoch=F("epoch") + 1, renewed_at=moment):
        return None
    return mine.values_list("epoch", flat=True).first()


def holds(name: str, holder: str, epoch: int) -> bool:
    """Whether `holder` still acts. Inside a transaction this also keeps others from taking over meanwhile."""
    return bool(Lease.objects.filter(name=name, holder=holder, epoch=epoch).update(renewed_at=now()))


def release(name: str, holder: str) -> None:
    """Let the next one act at once."""
    Lease.objects.filter(name=name, holder=holder).update(holder="", renewed_at=now() - 2 * TTL)
