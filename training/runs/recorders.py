"""Callbacks that record what trainings are given: packages above register them, submission and restore call them.

They run inside of the transaction that queues the jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiplatform.lib.registry import Registry, dotted_name
from workers.core.models import Job

#: Called with the jobs that were submitted and the parameters of each.
SUBMITTED: Registry[Callable[[Sequence[Job], Sequence[Mapping[str, Any]]], object]] = Registry(
    "recorder of submitted jobs", name=dotted_name
)
#: Called with a job that is restored and its new parameters.
RESTORED: Registry[Callable[[Job, Mapping[str, Any]], object]] = Registry("recorder of restored jobs", name=dotted_name)


def record_submitted(jobs: Sequence[Job], params: Sequence[Mapping[str, Any]]) -> None:
    """Call every recorder of submitted jobs."""
    for record in SUBMITTED:
        record(jobs, params)


def record_restored(job: Job, params: Mapping[str, Any]) -> None:
    """Call every recorder of restored jobs."""
    for record in RESTORED:
        record(job, params)
