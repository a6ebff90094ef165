"""Placing: gives queued jobs their devices; attempts, allocations and shares in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings
from django.db import transaction
from django.db.models import F

from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from workers.core import held_back, queues
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.states import Event
from workers.execution import handing_over, launch, tickets
from workers.jobs import transitions
from workers.jobs.transitions import Move

Places = Sequence[tuple[int, Sequence[tuple[int, int]]]]


class Late(Exception):
    """The snapshot was older than the rows: the job moved on or a device filled up."""


def place(job_id: int, places: Places) -> Attempt:
    """Assign `places` (node id, [(device id, shares)]) to a queued job; the first place, by address, is rank 0.

    Raises:
        Late: nothing was written.
    """
    late = place_many([(job_id, places)])
    if job_id in late:
        raise Late(late[job_id])
    return Attempt.objects.select_related("job").get(job=job_id, ended_at=None)


@transaction.atomic
def place_many(assignments: Sequence[tuple[int, Places]]) -> dict[int, str]:
    """Do what `place` does for several jobs, in a few statements.

    Returns:
        Why a job was not placed, by number, where the snapshot was older than the rows.
    """
    rows = _devices(assignments)
    jobs = Job.objects.select_for_update().in_bulk([job for job, _places in assignments])
    late = dict.fromkeys(held_back.holding(jobs), "waits for an approval or for other jobs by now")
    placed: dict[int, Places] = {}
    moves = []
    for job_id, wanted in assignments:
        if job_id in late or job_id not in jobs:
            late.setdefault(job_id, "is gone")
            continue
        places = _by_address(wanted, rows)
        if full := _reserve(places, rows):
            late[job_id] = f"device {full} has not enough free shares any more"
            continue
        names = [rows[devices[0][0]].node.name if devices[0][0] in rows else "?" for _node, devices in places]
        moves.append(Move(jobs[job_id], Event.PLACED, message=wording.message("job.placed", nodes=names)))
        placed[job_id] = places
    for job_id, refused in transitions.move_many(moves).items():
        late[job_id] = str(refused)
        _reserve(placed.pop(job_id), rows, undo=True)
    if placed:
        _write(jobs, placed, rows)
    return late


def _by_address(places: Places, rows: Mapping[int, Device]) -> Places:
    """Places in the order of their ranks."""
    if len(places) == 1:
        return places

    # torchrun numbers nodes by their addresses as text; its first must be ours, whose log is shown
    def address(entry: tuple[int, Sequence[tuple[int, int]]]) -> str:
        first_device = entry[1][0][0]
        return rows[first_device].node.address if first_device in rows else ""

    return sorted(places, key=address)


def _reserve(places: Places, rows: Mapping[int, Device], *, undo: bool = False) -> int:
    """Count the shares of these places as used, in memory; the first device without room where not all have any."""
    wanted = [(device, -shares if undo else shares) for _node, devices in places for device, shares in devices]
    for device, shares in wanted:
        row = rows.get(device)
        if row is None or row.health != Device.Health.OK or row.used + shares > row.capacity:
            return device
    for device, shares in wanted:
        rows[device].used += shares
    return 0


def _write(jobs: Mapping[int, Job], placed: Mapping[int, Places], rows: Mapping[int, Device]) -> None:
    """Write what the placed jobs hold, and send the starts."""
    taken: dict[int, int] = {}
    for places in placed.values():
        for _node, devices in places:
            for device, shares in devices:
                taken[device] = taken.get(device, 0) + shares
    for device, shares in sorted(taken.items()):
        Device.objects.filter(pk=device).update(used=F("used") + shares)
    attempts = {attempt.job_id: attempt for attempt in Attempt.objects.filter(job__in=placed, ended_at=None)}
    Allocation.objects.bulk_create(
        Allocation(attempt=attempts[job], node_id=node, device_id=device, rank=rank, share=shares)
        for job, places in placed.items()
        for rank, (node, devices) in enumerate(places)
        for device, shares in devices
    )
    for job_id, places in placed.items():
        job, attempt = jobs[job_id], attempts[job_id]
        if job.min_nodes and job.nodes != len(places):  # it takes what is free, and more or less the next time
            job.nodes = len(places)
            job.save(update_fields=["nodes"])
        if len(places) > 1:
            tickets.lease_meeting(attempt)
        leads = {rank: _lead(devices, rows) for rank, (_node, devices) in enumerate(places)}
        if handing_over.is_needed(job, leads[0].node.name):
            enqueue("workers.hand_over", queue=queues.cpu(settings.NODE), attempt_id=attempt.pk)
        launch.send(attempt, leads)


def _devices(assignments: Iterable[tuple[int, Places]]) -> dict[int, Device]:
    """The devices of all these places with their nodes, by id, locked until the transaction ends."""
    wanted = {
        device for _job, places in assignments for _node, devices in places for device, _shares in devices
    }  # fmt: skip
    columns = ("kind", "index", "health", "used", "capacity", "node__name", "node__address")
    devices = Device.objects.select_for_update(of=("self",)).select_related("node").only(*columns)
    return {row.pk: row for row in devices.filter(pk__in=wanted).order_by("pk")}


def _lead(devices: Sequence[tuple[int, int]], rows: Mapping[int, Device]) -> Device:
    """The device of a rank whose worker starts it."""
    return min((rows[device] for device, _shares in devices), key=lambda device: device.index)
