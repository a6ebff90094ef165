"""Card health: a sick or vanished card takes no new work and ends its job; foreign processes are reported."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db import transaction

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from workers.core.models import Attempt, Device, Job, Node
from workers.core.states import Desired, Event, JobState, Reason
from workers.jobs import checkpoints, transitions
from workers.resources.nodes import lifecycle
from workers.resources.nodes.telemetry.probe import Fault, Reading

log = logging.getLogger(__name__)

SURE = 2
"""Readings in a row after which something is believed: one may be a busy driver, or a process that ends."""
_ENDING = (Desired.STOP, Desired.FINISH)
OK, GONE, SICK, EXTERNAL = Device.Health.OK, Device.Health.GONE, Device.Health.SICK, Device.Health.EXTERNAL


@dataclass
class Memory:
    """Earlier readings: how often in a row each card reported the same."""

    times: dict[int, tuple[tuple[str, Message], int]] = field(default_factory=dict)  # by device row


def watch(node: Node, readings: Iterable[Reading], memory: Memory) -> None:
    """Update the health of this node's devices from their readings.

    Whatever is not OK is offered no more, at once. Once it is sure, the jobs on a sick or vanished card fail
    with the reason; jobs beside a foreign process go on.
    """
    rows = {(device.kind, device.index): device for device in node.devices.exclude(kind=Device.Kind.CPU)}
    for reading in readings:
        device = rows.get((Device.Kind(reading.kind), reading.index))
        if device is None:
            continue
        health, note = judge(reading)
        last, count = memory.times.get(device.pk, (("", Message()), 0))
        count = count + 1 if last == (health, note) else 1
        memory.times[device.pk] = ((health, note), count)
        sure = count >= SURE or reading.fault in (Fault.ECC, Fault.VANISHED)
        if health == EXTERNAL and not sure:
            continue
        if (device.health, device.health_message) != (health, note) and (health != OK or sure):
            _write(node, device, health, note)
        if sure and health in (SICK, GONE):
            _fail_jobs(node, device, note)


def judge(reading: Reading) -> tuple[Device.Health, Message]:
    """(health, why) of one reading."""
    if reading.fault is Fault.VANISHED:
        return GONE, wording.message("card.off_bus")
    if reading.fault is Fault.HUNG:
        return SICK, wording.message("card.driver_hangs")
    if reading.fault is Fault.ECC:
        return SICK, wording.message("card.memory_errors", count=reading.ecc_errors or 1)
    strangers = [pid for pid in sorted(reading.processes) if not is_ours(pid)]
    if strangers:
        named = [f"{pid} ({_program(pid)})" for pid in strangers[:3]]
        return EXTERNAL, wording.message("card.foreign_process", processes=named)
    return OK, Message()


def is_ours(pid: int) -> bool:
    """Whether a process belongs to a job of this platform, or is not there (any more) for us to tell.

    A job's processes inherit its output folder. One whose environment we may not read is another user's; in a
    container the driver may name processes that exist only outside, of which nothing can be said.
    """
    if pid == os.getpid():
        return True
    proc = Path("/proc") / str(pid)
    try:
        marks = (proc / "environ").read_bytes().split(b"\0")
    except PermissionError:
        return False
    except OSError:
        return True
    prefix = f"AIP_OUTPUT_DIR={settings.DATA_ROOT}/".encode()
    if any(mark.startswith(prefix) for mark in marks):
        return True
    return not (proc / "exe").exists() and not marks[0]  # ends just now


def _program(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "comm").read_text().strip()[:30]
    except OSError:
        return "?"


def _write(node: Node, device: Device, health: Device.Health, note: Message) -> None:
    """Note it on the card, and in the event log where it changed its health."""
    unchanged = Device.objects.filter(pk=device.pk, health=device.health)
    if not unchanged.update(health=health, health_message=note):
        return
    if health == device.health:
        return
    log.warning("node=%s device=%s%s %s: %s", node.name, device.kind, device.index, health, note)
    message = note or wording.message("card.works_again")
    lifecycle.record(node, f"device_{health.value}", message, device=device)


def _fail_jobs(node: Node, device: Device, note: Message) -> None:
    """Jobs on a card that failed end as failed; their processes are ended by the sweep of what is over."""
    held = Attempt.objects.filter(ended_at=None, allocations__device=device, allocations__released_at=None)
    for attempt in held.select_related("job").distinct():
        if attempt.job.desired in _ENDING:
            continue
        message = wording.message("job.card_failed", card=device.index, node=node.name, why=note)
        try:
            with transaction.atomic():
                job = transitions.move(
                    attempt.job_id,
                    Event.EXITED_BAD,
                    attempt=attempt.number,
                    reason=Reason.DEVICE_FAILED,
                    message=message,
                )
                if job.state == JobState.QUEUED:  # it made room when the card failed
                    Job.objects.filter(pk=job.pk).update(resume_from=str(checkpoints.newest_checkpoint(job) or ""))
        except DomainError as exc:
            log.info("job=%s attempt=%s ended otherwise: %s", attempt.job_id, attempt.number, exc)
