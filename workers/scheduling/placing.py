"""Placing: gives a queued job its devices; attempt, allocations and shares in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import F

from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from workers import held_back, queues
from workers.execution import handing_over, launching, tickets
from workers.jobs import transitions
from workers.models import Allocation, Attempt, Device, Job
from workers.states import Event

Places = Sequence[tuple[int, Sequence[tuple[int, int]]]]


class Late(Exception):
    """The snapshot was older than the rows: the job moved on or a device filled up."""


@transaction.atomic
def place(job_id: int, places: Places) -> Attempt:
    """Assign `places` (node id, [(device id, shares)]) to a queued job; the first place, by address, is rank 0.

    Raises:
        Late: nothing was written.
    """
    about = _about(places)
    names = {device.node_id: device.node.name for device in about.values()}
    if len(places) > 1:  # torchrun numbers nodes by their addresses as text; its first must be ours, whose log is shown
        addresses = {device.node_id: device.node.address for device in about.values()}
        places = sorted(places, key=lambda place: addresses.get(place[0], ""))
    message = wording.message("job.placed", nodes=[names.get(node, "?") for node, _devices in places])
    seen = Job.objects.select_for_update().get(pk=job_id)
    if held_back.holds(job_id):
        raise Late(f"job {job_id} waits for an approval or for other jobs by now")
    try:
        job = transitions.move(job_id, Event.PLACED, message=message, locked=seen)
    except (transitions.StaleReport, transitions.IllegalMove) as exc:
        raise Late(str(exc)) from exc
    if job.min_nodes and job.nodes != len(places):  # it takes what is free, and more or less the next time
        job.nodes = len(places)
        job.save(update_fields=["nodes"])
    for _node, devices in places:
        for device, shares in devices:
            free = Device.objects.filter(pk=device, health=Device.Health.OK, used__lte=F("capacity") - shares)
            if not free.update(used=F("used") + shares):
                raise Late(f"device {device} has no {shares} free shares any more")
    attempt = Attempt.objects.get(job=job, number=job.attempt_number)
    Allocation.objects.bulk_create(
        Allocation(attempt=attempt, node_id=node, device_id=device, rank=rank, share=shares)
        for rank, (node, devices) in enumerate(places)
        for device, shares in devices
    )
    if len(places) > 1:
        tickets.lease_meeting(attempt)
    first = places[0][0]
    if handing_over.is_needed(job, names.get(first, "")):
        enqueue("workers.hand_over", queue=queues.cpu(settings.NODE), attempt_id=attempt.pk)
    launching.send(attempt, {rank: _lead(devices, about) for rank, (_node, devices) in enumerate(places)})
    return attempt


def _about(places: Places) -> dict[int, Device]:
    """The devices of these places with their nodes, by id."""
    wanted = [device for _node, devices in places for device, _shares in devices]
    columns = ("kind", "index", "node__name", "node__address")
    return Device.objects.select_related("node").only(*columns).in_bulk(wanted)


def _lead(devices: Sequence[tuple[int, int]], about: dict[int, Device]) -> Device:
    """The device of a rank whose worker starts it."""
    return min((about[device] for device, _shares in devices), key=lambda device: device.index)
