"""Pipelines for tests: made by the product's own services; their jobs end as a test says."""

from __future__ import annotations

import json
from typing import Any

from django.utils.timezone import now

from accounts.models import User
from inference.pipelines import loop, runs, writing
from inference.pipelines.models import Pipeline, PipelineRun, StepRun
from tests.factories import work
from workers.core.models import Attempt, Job
from workers.core.states import Event, Reason
from workers.execution import results
from workers.jobs import transitions


def pipeline(user: User, steps: dict[str, Any], *, name: str = "cells", **parameters: Any) -> Pipeline:
    """A pipeline with one version."""
    spec = {
        "format": 1,
        "parameters": {key: {"default": value} for key, value in parameters.items()},
        "steps": steps,
    }
    return writing.create(user=user, name=name, spec=spec)


def begun(user: User, steps: dict[str, Any], **how: Any) -> PipelineRun:
    """A run of a new pipeline, brought on once."""
    name = how.pop("name", f"p{Pipeline.objects.count()}")
    made = pipeline(user, steps, name=name)
    return again(made, user, **how)


def again(made: Pipeline, user: User, **how: Any) -> PipelineRun:
    """A run of the newest version, brought on once."""
    run = runs.start(user=user, version=writing.newest_or_refused(made), **how)
    loop.advance_run(run.pk)
    run.refresh_from_db()
    return run


def command(text: str = "true", **fields: Any) -> dict[str, Any]:
    """A step that runs a command."""
    return {"kind": "command", "with": {"command": text}, **fields}


def states(run: PipelineRun) -> dict[str, str]:
    """What became of each step, by the newest attempts."""
    rows = StepRun.objects.filter(run=run, item=-1).order_by("attempt")
    return {row.step: row.state for row in rows}


def step(run: PipelineRun, name: str, item: int = -1) -> StepRun:
    """Return the newest attempt of a step."""
    row = StepRun.objects.filter(run=run, step=name, item=item).order_by("-attempt").select_related("job").first()
    assert row is not None
    return row


def place(job: Job) -> Attempt:
    """It is under way on a machine."""
    for event in (Event.PLACED, Event.LAUNCHED, Event.STARTED):
        transitions.move(job.pk, event)
    Attempt.objects.filter(job=job, ended_at=None).update(started_at=now())
    return Attempt.objects.get(job=job, ended_at=None)


def end(job: Job | None, event: Event = Event.EXITED_OK, *, figures: dict[str, float] | None = None) -> None:
    """It runs, ends, and what it left is published."""
    assert job is not None
    job.refresh_from_db()
    attempt = place(job)
    folder = work.run_dir(job, attempt.number).outputs
    folder.mkdir(parents=True, exist_ok=True)
    if figures is not None:
        (folder / "metrics.json").write_text(json.dumps(figures))
    transitions.move(job.pk, event, attempt=attempt.number, reason=Reason.DONE)
    results.publish(job.pk)


def complete(run: PipelineRun, *names: str, **how: Any) -> None:
    """Let the jobs of steps end, and bring the run on."""
    for name in names:
        end(step(run, name).job, **how)
    loop.advance_run(run.pk)
    run.refresh_from_db()
