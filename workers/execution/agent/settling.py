"""Settling: writes how attempts ended, those that only exited together in a few statements.

The ends of all others need more than the exit record: what was requested, checkpoints, other ranks, another try.
`AttemptMonitor` writes those one by monitor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import transaction

from workers.core.models import Job
from workers.core.states import Desired, Event, JobState
from workers.execution.agent import verdicts
from workers.jobs import transitions
from workers.jobs.transitions import Move

if TYPE_CHECKING:
    from workers.execution.agent.attempt_monitor import AttemptMonitor

_BEGINS = (JobState.ASSIGNED, JobState.STARTING)


def is_plain(job: Job, record: Mapping[str, Any] | None) -> bool:
    """Return whether a job's end needs nothing but its exit record.

    That is the exit of a program on one machine that nobody requested, without another try to follow.
    """
    return (
        record is not None
        and job.nodes == 1
        and job.state in (*_BEGINS, JobState.RUNNING)
        and job.desired == Desired.RUN
        and record.get("requested") == "run"
        and record.get("code") not in (None, verdicts.SUSPENDED_CODE)
        and not any(record.get(name) for name in ("error", "limit", "node_down", "unkillable", "signal"))
        and (record["code"] == 0 or (job.restart == Job.Restart.NEVER and job.retried >= job.retries))
    )


def settle(ended: Sequence[AttemptMonitor]) -> list[AttemptMonitor]:
    """Write the ends of attempts whose monitors found them plain; returns those that are so no more.

    What was requested of a job meanwhile counts: it is read under the lock that a request would have to take.
    """
    with transaction.atomic():
        numbers = [monitor.attempt.job_id for monitor in ended]
        jobs = {job.pk: job for job in Job.objects.select_for_update().filter(pk__in=numbers).order_by("pk")}
        plain = [
            monitor
            for monitor in ended
            if monitor.attempt.job_id in jobs and is_plain(jobs[monitor.attempt.job_id], monitor.ended)
        ]
        starting = [monitor for monitor in plain if jobs[monitor.attempt.job_id].state in _BEGINS]
        transitions.move_many(
            [Move(jobs[monitor.attempt.job_id], Event.STARTED, monitor.attempt.number) for monitor in starting]
        )
        moves = []
        for monitor in plain:
            job = jobs[monitor.attempt.job_id]
            verdict = verdicts.judge(dict(monitor.ended or {}), job.state, wanted_reason=job.reason, can_suspend=False)
            moves.append(
                Move(job, verdict.event, monitor.attempt.number, verdict.reason, verdict.message, verdict.exit_code)
            )
        transitions.move_many(moves)
    return [monitor for monitor in ended if monitor not in plain]
