"""Detail of an opened step on the page of a run: results, attempts with reasons, items, its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from inference.pipelines import metric_names, run_presentation
from inference.pipelines.advance import STEP_ITEM
from inference.pipelines.models import PipelineRun, StepRun
from workers.core.models import Job
from workers.jobs import job_tabs

MAX_ATTEMPTS = 20  # the newest ones
MAX_ITEMS = 20  # those that failed before all others


def build_context(run: PipelineRun, key: str, shown: Mapping[str, Any], user: User) -> dict[str, Any]:
    """Return the context of `pipelines/_run_step.html`.

    Args:
        shown: the step as returned by `run_presentation.steps_of` for this user.

    Returns:
        `figures` as [(name, value)], `results` with their pages, `attempts` newest first, `items`, `answers` of people,
        and what its log needs: `job` with `job_attempts`, or `job` None with `log_withheld` where there is a job that
        this person may not see.
    """
    is_open = run_presentation.is_open(run, user)
    rows = run.step_runs.filter(step=key).defer("kept").select_related("job", "run")
    attempts = list(rows.filter(item=STEP_ITEM).order_by("-attempt")[:MAX_ATTEMPTS])
    job = _visible(user, [row.job for row in attempts[:1]]).get(shown["job"] or 0)
    return {
        **shown,
        "key": key,
        "figures": figures_of(shown["outputs"]),
        "results": _results(shown["outputs"], user),
        "attempts": [_attempt(row, is_open) for row in attempts],
        "items": _items(rows.exclude(item=STEP_ITEM), user, is_open=is_open),
        "answers": _answers(attempts[0]) if attempts and is_open else [],
        "job": job,
        "job_attempts": list(job.attempts.order_by("-number")) if job else [],
        "console": job_tabs.path(job.pk, job_tabs.CONSOLE) if job else "",
        "log_withheld": bool(shown["job"]) and job is None,
    }


def figures_of(outputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the metrics of all ports as text, those of the whole step before those of its parts."""
    metrics: dict[str, float | None] = {}
    for _port, value in sorted(outputs.items()):
        if _is_figures(value):
            metrics |= value.get("values", {})
    return metric_names.rows(metrics)


def _results(outputs: Mapping[str, Any], user: User) -> list[dict[str, str]]:
    """Return the results but for metrics, which have a table: of these a link to their evaluation."""
    others = {port: value for port, value in outputs.items() if not _is_figures(value)}
    results = run_presentation.results_of(others, user)
    for reference in outputs.values():
        if _is_figures(reference) and reference.get("evaluation"):
            links = run_presentation.results_of({"": reference}, user)
            results += [{"text": str(_("Evaluation")), "url": link["url"]} for link in links if link["url"]]
    return results


def _is_figures(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "figures"


def _visible(user: User, jobs: list[Job | None]) -> dict[int, Job]:
    """Return those of the jobs whose log this user may read, by number."""
    numbers = [job.pk for job in jobs if job is not None]
    if not numbers or not user.can(Action.JOBS_VIEW):
        return {}
    visible: dict[int, Job] = Job.objects.visible_to(user).select_related("cluster").in_bulk(numbers)
    return visible


def _attempt(row: StepRun, is_open: bool) -> dict[str, Any]:
    return {
        "number": row.attempt,
        "label": run_presentation.answer_word(row) or row.label,
        "tone": row.state,
        "message": str(row.message) if is_open else "",
        "started": row.started_at,
        "elapsed_s": run_presentation.elapsed_s(row.started_at, row.ended_at),
    }


def _items(rows: Any, user: User, *, is_open: bool) -> list[dict[str, Any]]:
    """The newest attempt of each item, those that failed first."""
    newest: dict[int, StepRun] = {row.item: row for row in rows.order_by("item", "attempt")}
    order = {StepRun.State.FAILED: 0, StepRun.State.STARTED: 1}
    chosen = sorted(newest.values(), key=lambda row: (order.get(StepRun.State(row.state), 2), row.item))[:MAX_ITEMS]
    visible = _visible(user, [row.job for row in chosen])
    return [
        {
            "number": row.item + 1,
            **_attempt(row, is_open),
            "console": job_tabs.path(row.job_id, job_tabs.CONSOLE) if row.job_id in visible else "",
        }
        for row in chosen
    ]


def _answers(row: StepRun) -> list[dict[str, Any]]:
    """Return who answered the question of a step, and their comments."""
    approval = getattr(row, "approval", None)
    if approval is None:
        return []
    answers = approval.answers.select_related("person").order_by("pk")
    return [
        {
            "person": answer.person.get_full_name(),
            "passed": answer.answer == "passed",
            "comment": answer.comment,
            "at": answer.at,
        }
        for answer in answers
    ]
