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
    """The node's processes; none while it does not report."""
    records: list[dict[str, Any]] = view.sample.get("services") or []
    numbers = {record["pid"]: _job_of(record.get("run", "")) for record in records}
    jobs = Job.objects.visible_to(user).in_bulk([number for number in numbers.values() if number])
    rows = []
    for record in records:
        number = numbers[record["pid"]]
        job = jobs.get(number) if number else None
        rows.append(
            Service(record["name"], record["pid"], record["memory_mib"], record["up_s"], job, number is not None)
        )
    return rows


def pinned_packages(name: str) -> str:
    """What jobs store on the node, for an operator about to drain or remove it; "" for nothing."""
    pinned = pins.count_by_node().get(name)
    if pinned is None:
        return ""
    text = _(
        "Installed packages of jobs are stored on this node (%(live)s running, %(waiting)s waiting, %(over)s "
        "stopped). These jobs start only here: while the node is drained or unreachable, they wait."
    )
    return text % vars(pinned)


def _job_of(run: str) -> int | None:
    """The job's number in a run directory `…/jobs/<job>/<attempt>`, or in a path below it."""
    parts = Path(run).parts
    after = [word for before, word in pairwise(parts) if before == "jobs" and word.isdecimal()]
    return int(after[-1]) if after else None
