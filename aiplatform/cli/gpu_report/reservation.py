"""Reservation of GPUs for the report: by the platform where one runs on this node, else by what the driver says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from aiplatform.cli.gpu_report import locks
from workers.resources.nodes.telemetry.probe import Card

POLL_S, END_S = 0.3, 15.0
NAME = "GPU report"


class Unavailable(Exception):
    """No GPU can be measured now; the message says why and what to do."""


@dataclass
class Reservation:
    """The GPUs of one report.

    Attributes:
        how: "job", "drained node", "no platform" or "simulated".
        warnings: what the reader of the values should know.
    """

    devices: list[Card]
    how: str
    job: int | None = None
    warnings: list[str] = field(default_factory=list)
    problem: Callable[[], str] = lambda: ""

    def as_json(self) -> dict[str, Any]:
        return {
            "how": self.how, "job": self.job, "warnings": self.warnings,
            "devices": [asdict(device) for device in self.devices],
        }  # fmt: skip


@contextmanager
def reserve(
    devices: Sequence[Card], facts: Mapping[str, Any], left_s: float, *, folder: Path, max_gpus: int, wait_s: float,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Reservation]:  # fmt: skip
    """Reserve up to `max_gpus` of these GPUs, and release them at the end.

    Args:
        devices: the GPUs of this node, as the driver names them.
        left_s: how long the report still runs: the reservation ends soon after that in any case.
        folder: below AIP_DATA_ROOT, for the file of the lock.
        wait_s: how long to wait for the job that holds them.

    Raises:
        Unavailable: no GPU is free, or the platform does not give one in time.
    """
    node = _node()
    if node is None:
        yield _without_platform(devices, facts, max_gpus)
        return
    by_index = {device.index: device for device in devices}
    from workers.execution import reservations

    free = [row for row in reservations.free_gpus(node) if row.index in by_index]
    if not free:
        raise Unavailable(_busy(node))
    if node.drain:
        chosen = [by_index[row.index] for row in free[:max_gpus]]
        yield Reservation(chosen, "drained node", problem=partial(_resumed, node.pk))
        return
    lock = folder / f"{locks.OWNER}{os.getpid()}"
    with locks.held(lock) as unlock:
        job = _submitted(node, min(max_gpus, len(free)), lock, left_s)
        try:
            rows = _wait_for(job, min(wait_s, left_s), pause)
            chosen = [by_index[row.index] for row in rows if row.index in by_index]
            yield Reservation(chosen, "job", job.pk, problem=partial(_ended, job.pk))
        finally:
            _release(job, unlock, pause)


@contextmanager
def simulate(
    devices: Sequence[Card], _facts: Mapping[str, Any], _left_s: float, *, max_gpus: int
) -> Iterator[Reservation]:
    """Reserve simulated GPUs without a platform."""
    yield Reservation(list(devices[:max_gpus]), "simulated")


def _node() -> Any:
    """The row of this node where its agent is heard of; None where no platform runs here."""
    from django.conf import settings
    from django.db import DatabaseError

    from aiplatform import env
    from workers.core import clock
    from workers.core.models import Node

    try:
        node = Node.objects.filter(name=settings.NODE).exclude(state=Node.State.REMOVED).first()
        if node is None or clock.now() - node.heartbeat_at > timedelta(seconds=env.NODE_SUSPECT_S):
            return None
    except DatabaseError:
        return None
    return node


def is_platform_running() -> bool:
    """Whether the agent of this node is heard of."""
    return _node() is not None


def _without_platform(devices: Sequence[Card], facts: Mapping[str, Any], max_gpus: int) -> Reservation:
    busy = {int(index): processes for index, processes in facts.get("processes", {}).items() if processes}
    free = [device for device in devices if device.index not in busy]
    texts = [f"GPU {index} is used by process {', '.join(sorted(processes))}" for index, processes in busy.items()]
    if not free:
        raise Unavailable(f"{'; '.join(texts)}. Stop these processes, or wait until they exit.")
    warning = "The platform is not running on this node: other programs could use the GPUs during the measurement."
    return Reservation(free[:max_gpus], "no platform", warnings=[warning, *texts])


def _busy(node: Any) -> str:
    from workers.execution import reservations

    jobs = reservations.holding_jobs(node)
    named = ", ".join(str(job) for job in jobs[:8]) + (f" and {len(jobs) - 8} more" if len(jobs) > 8 else "")
    if jobs:
        return f"No GPU of {node.name} is free: they are used by {named}. Drain the node, or wait for these jobs."
    return f"No GPU of {node.name} is free and healthy. See its page for the state of each GPU."


def _submitted(node: Any, count: int, lock: Path, left_s: float) -> Any:
    from aiplatform.lib.errors import DomainError
    from workers.execution import reservations

    owner = reservations.administrator()
    if owner is None:
        raise Unavailable("The platform has no administrator yet who could reserve GPUs.")
    limit = timedelta(seconds=round(left_s) + 60)
    try:
        return reservations.submit(node, gpus=count, lock=lock, name=NAME, max_runtime=limit, by=owner)
    except DomainError as exc:
        raise Unavailable(f"The platform cannot reserve a GPU: {exc}") from exc


def _wait_for(job: Any, wait_s: float, pause: Callable[[float], None]) -> Sequence[Any]:
    from workers.execution import reservations

    deadline = time.monotonic() + wait_s
    while not (rows := reservations.reserved_gpus(job)):
        if job.is_final:
            raise Unavailable(f"The reservation, job #{job.pk}, ended before it started: {job.message}")
        if time.monotonic() > deadline:
            why = job.wait_sentence or "the reservation is queued"
            raise Unavailable(f"The reservation, job #{job.pk}, did not start within {wait_s:.0f} s: {why}")
        pause(POLL_S)
    return rows


def _ended(job: int) -> str:
    """Why the GPUs are no longer ours; "" while they are."""
    from django.db import DatabaseError

    from workers.core.models import Job
    from workers.core.states import Desired, JobState

    try:
        row = Job.objects.get(pk=job)
    except DatabaseError:
        return "The database of the platform does not respond, so the reservation may have ended."
    if row.state == JobState.RUNNING and row.desired == Desired.RUN:
        return ""
    return f"The reservation, job #{job}, was ended: {row.message or row.get_state_display()}"


def _resumed(node: int) -> str:
    from workers.core.models import Node

    row = Node.objects.get(pk=node)
    return "" if row.drain else f"{row.name} accepts jobs again: its GPUs are not free for the report any more."


def _release(job: Any, unlock: Callable[[], None], pause: Callable[[float], None]) -> None:
    """Let the job end: by the lock where it runs, by a stop where it still waits."""
    from django.db import DatabaseError

    from aiplatform.lib.errors import DomainError
    from workers.core.states import JobState
    from workers.jobs import actions

    with suppress(DatabaseError):  # the lock is released in any case, and the values measured so far are kept
        job.refresh_from_db()
        if job.state == JobState.QUEUED:
            with suppress(DomainError):
                actions.stop(job)
        unlock()
        deadline = time.monotonic() + END_S
        while not job.is_final and time.monotonic() < deadline:
            pause(POLL_S)
            job.refresh_from_db()
