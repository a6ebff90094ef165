"""What is wrong with the platform, in words for everybody: the banner of every page.

It reads rows that are true even while nobody watches: the scheduler's lease, the machines' heartbeats, and those raised
alarms that everybody feels. Details, and what to do about them, stand on the operators' page of alarms.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext_lazy as _

from aiplatform import env
from workers.core import leases
from workers.core.clock import now
from workers.core.models import Alarm, Lease, Node

SILENCE_TIMEOUT = timedelta(seconds=30)
"""A scheduler renews its lease every few seconds; one that was replaced is back sooner than this."""
NODE_SILENCE_TIMEOUT = timedelta(seconds=env.NODE_UNREACHABLE_S)

#: Raised alarms that everybody feels, by rule.
FELT: dict[str, Any] = {
    "disk_full": _(
        "The disk of the platform is almost full: uploads and new jobs may be rejected until space is freed."
    ),
    "broker_away": _(
        "Some services of the platform cannot reach each other: pages and jobs may be delayed by seconds."
    ),
}


def sentences() -> list[Any]:
    """Present problems, the worst first; empty without any."""
    moment, messages = now(), []
    last = Node.objects.exclude(state=Node.State.REMOVED).aggregate(last=Max("heartbeat_at"))["last"]
    if last is not None and moment - last > NODE_SILENCE_TIMEOUT:
        messages.append(_("No node responds at the moment: no jobs start. Waiting jobs keep their position."))
    planned = Lease.objects.filter(name=leases.SCHEDULER).values_list("renewed_at", flat=True).first()
    if planned is not None and moment - planned > SILENCE_TIMEOUT:
        messages.append(_("The scheduler is not running: no job starts. Running jobs continue."))
    raised = Alarm.objects.filter(ended_at=None, raised_at__isnull=False, rule__key__in=FELT)
    broken = set(raised.values_list("rule__key", flat=True))
    return messages + [sentence for key, sentence in FELT.items() if key in broken]
