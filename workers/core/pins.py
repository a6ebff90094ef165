"""Pins: waiting jobs that may start on one machine alone, because what they go on with lies on its disk.

    pins.register(pins.Source("images", boxes.machines, boxes.count_by_node))        # in AppConfig.ready()

Whoever keeps something of a job on one machine says so here; planner input, `held_back` and machine pages ask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import QuerySet

from aiplatform.lib.registry import Registry
from workers.core.models import Job
from workers.core.states import FINAL, JobState

Machines = Callable[[QuerySet[Job]], Mapping[int, str]]
"""Names of machines by job, of those among some that belong to one; a query."""


@dataclass(frozen=True)
class Source:
    """An app that stores data of jobs on nodes.

    `counts` returns all of these jobs: (machine, state of the job, how many).
    """

    name: str
    machines: Machines
    counts: Callable[[], Iterable[tuple[str, str, int]]]


@dataclass
class Kept:
    """How many jobs keep something on a machine, and start nowhere else."""

    live: int = 0
    waiting: int = 0
    over: int = 0


SOURCES: Registry[Source] = Registry("source of pins")


register = SOURCES.register  # called once from the owning app's AppConfig.ready()


def of_waiting() -> dict[int, str]:
    """Names of machines by waiting job; jobs that may start anywhere are left out."""
    return _nodes_of(Job.objects.filter(state=JobState.QUEUED))


def of_job(job: Job) -> str:
    """The name of the machine that a job belongs to; "" where it may start anywhere."""
    return _nodes_of(Job.objects.filter(pk=job.pk)).get(job.pk, "")


def _nodes_of(jobs: QuerySet[Job]) -> dict[int, str]:
    nodes: dict[int, str] = {}
    for source in SOURCES:
        nodes |= source.machines(jobs)
    return nodes


def count_by_node() -> dict[str, Kept]:
    """Number of jobs with data on each node; nodes without any are left out."""
    counts: dict[str, Kept] = defaultdict(Kept)
    for source in SOURCES:
        for machine, state, count in source.counts():
            if state == JobState.QUEUED:
                counts[machine].waiting += count
            elif state in FINAL:
                counts[machine].over += count
            else:
                counts[machine].live += count
    return dict(counts)
