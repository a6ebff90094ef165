"""Leases: elect the one acting process of a kind. A replaced holder notices at its next write."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from aiplatform import env
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from workers.core.clock import now
from workers.core.models import Lease

SCHEDULER = "scheduler"
"""The lease of whoever plans the queue."""
TTL = timedelta(seconds=10)
"""A holder silent for longer may be replaced."""
CLAIMS = Claims(ttl=TTL, clock=now, ends_with_process=True)


def longest_gap(lost_s: float) -> timedelta:
    """How long the lease may be without holder before silence meanwhile proves nothing.

    Args:
        lost_s: silent for so long a node is given up; it keeps half of that to be heard again.
    """
    return timedelta(seconds=min(30.0, lost_s / 2))


GAP = longest_gap(env.NODE_LOST_S)


def watched(name: str, moment: datetime) -> timedelta:
    """For how long the lease has been held without a gap."""
    since = Lease.objects.filter(name=name).values_list("watched_since", flat=True).first()
    return moment - since if since else timedelta(0)


def acquire(name: str, holder: str) -> int | None:
    """Become or stay the holder; return the epoch, or None while another process holds it."""
    row = Lease.objects.filter(name=name)
    row.filter(renewed_at__lt=now() - GAP).update(watched_since=now())
    claim = CLAIMS.acquire(row, holder=holder)
    if claim is None and not row.exists():
        with suppress(IntegrityError), transaction.atomic():  # another process was faster
            Lease.objects.create(name=name)
        claim = CLAIMS.acquire(row, holder=holder)
    return claim.epoch if claim else None


def holds(name: str, holder: str, epoch: int) -> bool:
    """Whether `holder` still acts. Inside a transaction this also keeps others from taking over meanwhile."""
    try:
        Claim(CLAIMS, Lease.objects.filter(name=name), holder, epoch).renew()
    except ClaimLost:
        return False
    return True


def release(name: str, holder: str) -> None:
    """Let the next one act at once."""
    Lease.objects.filter(name=name, holder=holder).update(holder="")
