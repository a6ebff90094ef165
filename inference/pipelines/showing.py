"""What pages and the API show of a run: each step's newest attempt, with counts of its items."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from django.urls import reverse

from accounts.models import User
from inference.pipelines.advance import FINAL, WHOLE
from inference.pipelines.models import Approval, PipelineRun, StepRun
from workers import kinds as job_kinds
from workers.clock import now

#: Pages behind references, by type.
PAGES = {"dataset": "datasets:version", "service": "inference:service-detail"}


def steps_of(run: PipelineRun, user: User) -> dict[str, dict[str, Any]]:
    """Each step of a run by name, as JSON."""
    rows = list(run.step_runs.select_related("job", "cached_from__run__pipeline"))
    newest: dict[str, StepRun] = {}
    items: dict[tuple[str, int], StepRun] = {}
    for row in sorted(rows, key=lambda one: one.attempt):
        if row.item == WHOLE:
            newest[row.step] = row
        else:
            items[row.step, row.item] = row
    counts: dict[str, Counter[str]] = {}
    for (step, _item), row in items.items():
        counts.setdefault(step, Counter())[row.state] += 1
    asked = {one.step_run_id: one for one in Approval.objects.filter(step_run__run=run).prefetch_related("people")}
    return {key: _shown(row, counts.get(key, Counter()), asked.get(row.pk), user) for key, row in newest.items()}


def _shown(row: StepRun, counts: Counter[str], approval: Approval | None, user: User) -> dict[str, Any]:
    job = row.job
    may_see = job is not None and (job.owner_id == user.pk or user.sees_everything or row.run.owner_id == user.pk)
    message = str(row.message)
    if not message and row.state == StepRun.State.STARTED and job is not None:
        message = str(job.message)
    return {
        "state": row.state,
        "label": row.get_state_display(),
        "attempt": row.attempt,
        "message": message,
        "answer": row.answer,
        "outputs": row.outputs,
        "job": row.job_id,
        "job_state": job.state if job else "",
        "progress": job.progress if job and row.state == StepRun.State.STARTED else None,
        "url": job_kinds.url_of(job) if job and may_see else "",
        "started": row.started_at,
        "ended": row.ended_at,
        "elapsed_s": elapsed_s(row.started_at, row.ended_at),
        "cached": _earlier(row),
        "items": dict(counts),
        "approval": _asked(approval, user) if approval and row.state == StepRun.State.ASKING else None,
    }


def elapsed_s(begun: datetime | None, ended: datetime | None) -> float | None:
    """How long something has taken, in seconds; None while it has not begun."""
    return None if begun is None else round(((ended or now()) - begun).total_seconds(), 1)


def _earlier(row: StepRun) -> dict[str, Any] | None:
    if row.cached_from is None:
        return None
    run = row.cached_from.run
    return {"run": run.pk, "label": str(run), "at": row.cached_from.ended_at, "url": run_page(run)}


def _asked(approval: Approval, user: User) -> dict[str, Any]:
    people = list(approval.people.all())
    answered = approval.answers.filter(person=user).exists()
    return {
        "id": approval.pk,
        "question": approval.question,
        "people": [person.username for person in people],
        "needed": approval.needed,
        "expires": approval.expires_at,
        "mine": user.pk in {person.pk for person in people} and not answered,
    }


def run_page(run: PipelineRun) -> str:
    """The page of a run."""
    return reverse("pipelines:run", args=[run.pk])


def is_live(run: PipelineRun) -> bool:
    """Whether its page has to be refreshed."""
    return run.state == PipelineRun.State.RUNNING


def counts_of(steps: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Steps by state, those that are over first."""
    found = Counter(one["state"] for one in steps.values())
    return {state: found[state] for state in sorted(found, key=lambda one: (one not in FINAL, one))}
