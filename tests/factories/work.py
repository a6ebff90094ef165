"""Machines, jobs and what they leave behind, as rows and files, for tests that do not run anything."""

from __future__ import annotations

from typing import Any

from django.utils.timezone import now

from accounts.models import User
from workers.core.models import Allocation, Attempt, Device, Job, Node, VirtualCluster
from workers.core.runs import RunDir
from workers.core.states import FINAL, JobState


def node(name: str = "node1", *, gpus: int = 0, cores: int = 4, simulated: bool = False, **columns: Any) -> Node:
    """A live machine with `gpus` cards and its cores as one CPU device (two slots a core)."""
    made = Node.objects.create(name=name, cpu_cores=cores, memory_mib=16_384, **columns)
    Device.objects.create(node=made, kind="cpu", model="CPU", capacity=16 * cores)
    for index in range(gpus):
        Device.objects.create(
            node=made,
            kind="gpu",
            index=index,
            uuid=f"{name}-{index}",
            model="Test card",
            memory_mib=16_384,
            simulated=simulated,
        )
    return made


def job(
    owner: User, cluster: VirtualCluster, *, name: str = "job", state: str = JobState.QUEUED, **columns: Any
) -> Job:
    """A job row in `state`, with its attempt where it has been placed."""
    number = columns.pop("attempt_number", 0 if state == JobState.QUEUED else 1)
    made = Job.objects.create(
        owner=owner,
        cluster=cluster,
        name=name,
        kind=columns.pop("kind", "command"),
        state=state,
        attempt_number=number,
        **columns,
    )
    if number:
        over = now() if state in FINAL else None
        Attempt.objects.create(job=made, number=number, state=state, started_at=now(), ended_at=over)
    return made


def hold(job: Job, *devices: Device, share: int = 8) -> None:
    """Let the job's attempt hold `share` of each device."""
    attempt = job.attempts.get(number=job.attempt_number)
    for device in devices:
        Allocation.objects.create(attempt=attempt, node=device.node, device=device, share=share)
        Device.objects.filter(pk=device.pk).update(used=device.used + share)


def run_dir(job: Job, attempt: int | None = None) -> RunDir:
    """The job's run directory, made."""
    run = RunDir.for_attempt(job.pk, attempt or job.attempt_number)
    run.path.mkdir(parents=True, exist_ok=True)
    return run
