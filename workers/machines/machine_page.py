"""What a machine's page shows beside its figures: processes with their jobs, disks, versions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from accounts.models import User
from workers.machines.nodes import NodeView
from workers.models import Job


@dataclass(frozen=True)
class Service:
    """A process of the platform. `job` is set for a supervisor whose job the reader may see."""

    name: str
    pid: int
    memory_mib: float
    up_s: float
    job: Job | None
    of_job: bool


def services(view: NodeView, user: User) -> list[Service]:
    """The machine's processes; none while it is silent."""
    told: list[dict[str, Any]] = view.sample.get("services") or []
    numbers = {one["pid"]: _job_of(one.get("run", "")) for one in told}
    known = Job.objects.visible_to(user).in_bulk([number for number in numbers.values() if number])
    found = []
    for one in told:
        number = numbers[one["pid"]]
        job = known.get(number) if number else None
        found.append(Service(one["name"], one["pid"], one["memory_mib"], one["up_s"], job, number is not None))
    return found


def _job_of(run: str) -> int | None:
    """The job's number in a run directory `…/jobs/<job>/<attempt>`, or in what lies below it."""
    parts = Path(run).parts
    after = [word for before, word in pairwise(parts) if before == "jobs" and word.isdecimal()]
    return int(after[-1]) if after else None
