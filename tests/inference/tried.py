"""Trials that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

import io
from pathlib import Path

from inference.registry import imports
from inference.registry.formats.declared import NOTHING, Declared
from inference.registry.import_trials import results, trials
from inference.registry.kind import ModelTaskKind
from inference.registry.models import ModelTask
from tests.inference import programs
from workers.core.models import Job
from workers.core.runs import RunDir


def submitted(user, path: Path, *, pictures=(), version=None, declared: Declared = NOTHING, **about) -> ModelTask:
    """Queued; pictures are bytes."""
    given = [trials.Example(f"{place}.png", io.BytesIO(data)) for place, data in enumerate(pictures)]
    brought = imports.uploaded(path, path.name, declared, tried=True)
    about = {"name": path.stem} | about
    return trials.submit(user=user, brought=brought, declared=declared, pictures=given, version=version, **about)


def ran(task: ModelTask) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    log = programs.ran(ModelTaskKind(), task.job)
    task.refresh_from_db()
    return log


def best(task: ModelTask) -> list[Declared]:
    """The ways that it shows, best first."""
    ways = trials.ways_of(task)
    return [ways[one["number"]] for one in task.figures["best"]]


def found(task: ModelTask) -> results.Found:
    """All that its first attempt left."""
    return results.read(RunDir.for_attempt(task.job_id, 1).outputs, ways=len(task.job.spec["ways"]))


def over(task: ModelTask) -> None:
    """Run it to the end that its job has for those who wait."""
    ran(task)
    Job.objects.filter(pk=task.job_id).update(published_attempt=1)
