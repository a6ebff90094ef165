"""Which jobs hold the devices that a queued job waits for, and whether their ends are known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from accounts.models import User
from aiplatform.lib import units
from workers.core.device_kinds import CPU
from workers.core.models import Device, Job
from workers.core.states import JobState
from workers.planning import planner_input
from workers.planning.planner.snapshot import FULL_CARD

CODES = frozenset({"no_cpu", "no_cards", "no_share", "scattered", "machine_full", "reserved"})
"""Codes of `planner.plan.Wait` that say that devices are in use."""
MAX_NAMED = 3


@dataclass(frozen=True)
class Holder:
    """A job, as far as the reader may see it, and how much it holds.

    Attributes:
        amount: GPUs or CPU cores.
        has_end: whether its end is known: it has a limit or reports the time left.
    """

    job: Job
    amount: str
    has_end: bool


@dataclass(frozen=True)
class Holders:
    """Who holds the devices: jobs by name, and how much jobs hold that the reader may not see or that are not named.

    Attributes:
        endless: the first job without a known end, if the reader may see it.
        others_endless: whether a job that the reader may not see has no known end.
    """

    named: list[Holder]
    others: str
    is_cpu: bool
    endless: Job | None
    others_endless: bool


def holders_of(job: Job, user: User, moment: datetime) -> Holders | None:
    """Return who holds what a queued job waits for; None where it waits for something else."""
    if job.state != JobState.QUEUED or job.wait_code not in CODES:
        return None
    kind = job.device_kind if job.gpus_per_node else CPU.name
    devices = set(Device.objects.filter(kind=kind).values_list("pk", flat=True))
    held: dict[int, int] = {}
    endless: set[int] = set()
    for run in planner_input.holding(moment):
        shares = sum(shares for device, shares in run.held if device in devices)
        if not shares:
            continue
        held[run.job] = held.get(run.job, 0) + shares
        if run.ends_at is None:
            endless.add(run.job)
    visible = Job.objects.visible_to(user).select_related("owner").in_bulk(list(held))
    largest = sorted(visible, key=lambda number: (-held[number], number))[:MAX_NAMED]
    named = [Holder(visible[number], _amount(held[number]), number not in endless) for number in largest]
    others = sum(shares for number, shares in held.items() if number not in largest)
    first = next((visible[number] for number in sorted(endless) if number in visible), None)
    return Holders(named, _amount(others) if others else "", kind == CPU.name, first, bool(endless - set(visible)))


def _amount(shares: int) -> str:
    return units.number(shares / FULL_CARD)
