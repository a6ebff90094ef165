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


def submitted(user, path: Path, *, pictures=(), version=None, declared: Declared = NOTHING, **fields) -> ModelTask:
    """Queued; pictures are bytes."""
    examples = [trials.Example(f"{number}.png", io.BytesIO(data)) for number, data in enumerate(pictures)]
    brought = imports.from_upload(path, path.name, declared, tried=True)
    fields = {"name": path.stem} | fields
    return trials.submit(user=user, brought=brought, declared=declared, pictures=examples, version=version, **fields)


def ran(task: ModelTask) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    log = programs.ran(ModelTaskKind(), task.job)
    task.refresh_from_db()
    return log


def best(task: ModelTask) -> list[Declared]:
    """The ways that it shows, best first."""
    ways = trials.ways_of(task)
    return [ways[row["number"]] for row in task.figures["best"]]


def load_results(task: ModelTask) -> results.TrialResult:
    """Return all results of its first attempt ."""
    return results.read(RunDir.for_attempt(task.job_id, 1).outputs, ways=len(task.job.spec["ways"]))


def over(task: ModelTask) -> None:
    """Run it to the end that its job has for those who wait."""
    ran(task)
    Job.objects.filter(pk=task.job_id).update(published_attempt=1)
