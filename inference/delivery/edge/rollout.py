"""Releases that go on by themselves: to the next share once the devices reached so far have run it well for a time."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from django.db import transaction
from django.utils.timezone import now

from accounts.services import audit
from inference.delivery.edge import fleet
from inference.delivery.edge.models import EdgeGroup

RUNNING = 0.9  # share of the devices reached that must run it for that time; others may be switched off
SILENCE_TIMEOUT = timedelta(minutes=30)  # after it, the state of a silent device is unknown


def advance(group: EdgeGroup) -> bool:
    """Carry a release on if its time has come; whether it was.

    Failures halt it before: `fleet.report` counts them as they come.
    """
    if not _is_due(group):
        return False
    with transaction.atomic():
        held = EdgeGroup.objects.select_for_update(of=("self",)).select_related("wanted").get(pk=group.pk)
        if not _is_due(held):
            return False
        held.share = min(share for share in fleet.SHARES if share > held.share)
        held.number, held.stage_at = held.number + 1, now()
        held.save(update_fields=["share", "number", "stage_at"])
        audit.record(None, "edge_release_went_on", held, version=held.wanted.model_label, share=held.share)
    group.refresh_from_db()
    return True


def _is_due(group: EdgeGroup) -> bool:
    if not group.soak_minutes or group.wanted is None or group.halted or group.share >= 100 or group.stage_at is None:
        return False
    if now() - group.stage_at < timedelta(minutes=group.soak_minutes):
        return False
    since = now() - timedelta(minutes=group.soak_minutes)
    rows = group.devices.filter(
        package=group.wanted.sha256, runs_well_since__lte=since, seen_at__gte=now() - SILENCE_TIMEOUT
    )
    return rows.exclude(failed=group.wanted.sha256).count() >= ceil(RUNNING * fleet.aimed_at(group))


def sweep() -> None:
    """Look at all releases that go on by themselves."""
    rows = EdgeGroup.objects.filter(soak_minutes__gt=0, share__lt=100, halted=False).exclude(wanted=None)
    for group in rows.select_related("wanted"):
        advance(group)
