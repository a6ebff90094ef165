"""Rows for the bench of pipelines: runs, and jobs that end as rows."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

from inference.pipelines import loop, runs, writing
from inference.pipelines.models import PipelineRun, StepRun
from tests.factories import people, work
from workers.core.models import Attempt, Job, VirtualCluster
from workers.core.states import JobState


class Bench:
    """A person, a machine, and runs of theirs."""

    def __init__(self) -> None:
        cluster = VirtualCluster.objects.first() or VirtualCluster.objects.create(name="bench")
        work.node(cores=512)
        self.user = people.user("bench", cluster=cluster)
        self.open: list[int] = []

    def pipeline(self, name: str, steps: dict[str, Any]) -> Any:
        made = writing.create(user=self.user, name=name, spec={"steps": steps})
        return writing.newest_or_refused(made)

    def open_runs(self, count: int, steps: int) -> None:
        """Runs of a chain whose first job waits."""
        version = self.pipeline("chain", chain(steps))
        first = runs.start(user=self.user, version=version)
        loop.advance_run(first.pk)
        job = StepRun.objects.get(run=first, step="s00").job
        assert job is not None
        with transaction.atomic():
            made = PipelineRun.objects.bulk_create(
                PipelineRun(
                    pipeline=first.pipeline, version=version, number=number + 2, owner=self.user, spec=first.spec,
                    is_due=False,
                )
                for number in range(count - 1)
            )  # fmt: skip
            jobs = Job.objects.bulk_create(
                Job(name="s00", owner=self.user, cluster=job.cluster, kind="command", spec=job.spec, wait_code="new")
                for _run in made
            )
            StepRun.objects.bulk_create(
                (
                    StepRun(run=run, step=key, state="started", job=one) if key == "s00" else StepRun(run=run, step=key)
                    for run, one in zip(made, jobs, strict=True)
                    for key in first.spec["steps"]
                ),
                batch_size=500,
            )  # fmt: skip
        self.open = [first.pk, *(run.pk for run in made)]

    def sweep(self) -> None:
        """What the sweep of the platform does."""
        loop.advance_due()

    def wake(self, run: int) -> None:
        """What a job's end does."""
        loop.advance_run(run)

    def end_one_of_each(self, count: int) -> list[int]:
        """Let the jobs under way of so many runs end well; returns the runs."""
        chosen = self.open[:count]
        rows = StepRun.objects.filter(run__in=chosen, state="started").values_list("job_id", flat=True)
        end(list(rows))
        return chosen

    def alone(self, steps: int) -> float:
        """Seconds of submitting so many jobs without the engine."""
        from training.programs import request_schemas

        schema = request_schemas.get("command")
        begun = time.perf_counter()
        for number in range(steps):
            body = {"command": "true", "name": f"alone_{number}", "cpus": 1, "gpus_per_node": 0}
            end([request_schemas.submit(schema, self.user, body).pk])
        return time.perf_counter() - begun

    def chain(self, steps: int) -> float:
        """Seconds of a run of a chain whose jobs end at once."""
        run = runs.start(user=self.user, version=self.pipeline("timed", chain(steps)))
        begun = time.perf_counter()
        loop.advance_run(run.pk)
        for _step in range(steps):
            end(list(StepRun.objects.filter(run=run, state="started").values_list("job_id", flat=True)))
            loop.advance_run(run.pk)
        spent = time.perf_counter() - begun
        run.refresh_from_db()
        assert run.state == "ok", run.state
        return spent

    def each(self, items: int) -> tuple[float, int]:
        """Seconds and wake-ups of a for-each, sixteen at once."""
        steps = {
            "list": {"kind": "items", "with": {"values": list(range(items))}},
            "work": {"kind": "command", "with": {"command": "true"}, "each": "list.items"},
        }
        run = runs.start(user=self.user, version=self.pipeline("each", steps))
        spent, wakes = 0.0, 0
        while True:
            begun = time.perf_counter()
            loop.advance_run(run.pk)
            spent, wakes = spent + time.perf_counter() - begun, wakes + 1
            run.refresh_from_db()
            if run.is_over:
                assert run.state == "ok", run.state
                return spent, wakes
            end(list(StepRun.objects.filter(run=run, state="started", item__gte=0).values_list("job_id", flat=True)))


def chain(steps: int) -> dict[str, Any]:
    """Commands, each after the one before."""
    return {
        f"s{number:02}": {
            "kind": "command", "with": {"command": "true"}, **({"after": [f"s{number - 1:02}"]} if number else {}),
        }
        for number in range(steps)
    }  # fmt: skip


def end(jobs: list[int]) -> None:
    """They ended well, and what they left is published."""
    Job.objects.filter(pk__in=jobs).update(state=JobState.SUCCEEDED, attempt_number=1, published_attempt=1)
    Attempt.objects.bulk_create(Attempt(job_id=job, number=1, state=JobState.SUCCEEDED) for job in jobs)
