"""What lists and pages show of how far jobs are: their key metrics, and the phases of one that runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workers.core import kinds
from workers.core.models import Job
from workers.core.states import JobPhase

_ORDER = list(JobPhase)


@dataclass(frozen=True)
class PhaseStep:
    """A phase of a job: "done", "current" or "pending"."""

    label: Any
    state: str


def key_metrics(jobs: Iterable[Job]) -> dict[int, str]:
    """Return the key metrics in words, by number, of jobs of any kinds; at most one query for each kind."""
    by_kind: dict[str, list[int]] = {}
    for job in jobs:
        by_kind.setdefault(job.kind, []).append(job.pk)
    metrics: dict[int, str] = {}
    for name, numbers in by_kind.items():
        kind = kinds.KINDS.find(name)
        metrics |= kind.key_metrics(numbers) if kind else {}
    return metrics


def phase_steps(job: Job) -> list[PhaseStep]:
    """Return the phases of a job that runs, as its kind declares them, with the one that it reports.

    Empty for a kind that declares none and for a job that does not run.
    """
    kind = kinds.KINDS.find(job.kind)
    if kind is None or not kind.phases or not job.is_live:
        return []
    phases = [JobPhase(phase) for phase in kind.phases]
    current = JobPhase(job.phase) if job.phase in JobPhase.values else JobPhase.NONE
    if current and current not in phases:  # one that only some of its jobs have
        phases = sorted([*phases, current], key=_ORDER.index)
    index = phases.index(current) if current else -1
    states = ["done"] * index + ["current"] if current else []
    return [
        PhaseStep(phase.label, states[position] if position < len(states) else "pending")
        for position, phase in enumerate(phases)
    ]
