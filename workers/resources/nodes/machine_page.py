"""What a machine's page shows beside its figures: processes with their jobs, disks, versions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from workers.core import pins
from workers.core.models import Job
from workers.resources.nodes.nodes import NodeView


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


def kept(name: str) -> str:
    """What jobs keep on the machine, for whoever is about to drain or remove it; "" for nothing."""
    found = pins.kept().get(name)
    if found is None:
        return ""
    said = _(
        "Own packages of jobs lie on this machine (%(live)s running, %(waiting)s waiting, %(over)s stopped). They start"
        " nowhere else: while it is drained or away they wait for it."
    )
    return said % vars(found)


def _job_of(run: str) -> int | None:
    """The job's number in a run directory `…/jobs/<job>/<attempt>`, or in what lies below it."""
    parts = Path(run).parts
    after = [word for before, word in pairwise(parts) if before == "jobs" and word.isdecimal()]
    return int(after[-1]) if after else None
