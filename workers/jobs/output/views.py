"""The page of a job for kinds without one of their own, tab by tab."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform.frame.navigation import place_below
from aiplatform.lib import secret_names
from aiplatform.lib.pages import needs
from workers.core import kinds
from workers.core.models import Job
from workers.jobs import job_page, job_tabs
from workers.jobs.output import files, metrics, phase_words
from workers.jobs.views.jobs import visible

FILES_SHOWN = 200  # the download holds all of them


@require_GET
@needs(Action.JOBS_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One tab of a job, `?tab=`. A kind with a page of its own shows that instead of the overview."""
    job = visible(request, pk)
    url, tab_name = kinds.url_of(job), request.GET.get("tab", "")
    kind = kinds.KINDS.find(job.kind)
    own_page = url if url != request.path else ""
    if own_page and (not tab_name or (kind and kind.own_tabs)):
        return redirect(f"{own_page}?tab={job_tabs.find(tab_name).name}" if tab_name else own_page)
    tab = job_tabs.find(tab_name)
    list_url = kind.list_path() if kind else ""
    place_below(request, list_url or reverse("workers:queue"))
    context = {
        **job_page.context(job, request.user),
        **tab_context(job, request.user, tab.name),
        "tab": tab,
        "tabs": job_tabs.TABS,
        "own_page": own_page,
        "list_url": list_url,
        "list_label": kind.plural_label() if kind else "",
    }
    return render(request, "workers/job_detail.html", context)


@require_GET
@needs(Action.JOBS_VIEW)
def outputs(request: SignedInRequest, pk: int) -> HttpResponse:
    """The outputs alone, fetched again whenever the job moved."""
    job = visible(request, pk)
    return render(request, "workers/_files.html", {"job": job, **_outputs(job)})


def tab_context(job: Job, user: User, tab: str) -> dict[str, Any]:
    """Context of one tab: the panels of other apps, and its own content."""
    own = _OF_TAB.get(tab)
    return {"panels": job_page.panels(job, user, tab=tab)} | (own(job, user) if own else {})


def _overview(job: Job, user: User) -> dict[str, Any]:
    return {
        "facts": kinds.facts_of(job),
        "has_figures": metrics.has_figures(job),
        "events": job_page.events(job, job_page.NEWEST_EVENTS),
        "few": True,
    }


def _console(job: Job, user: User) -> dict[str, Any]:
    return {"log_phases": phase_words.phases()}


def _spec(job: Job, user: User) -> dict[str, Any]:
    """Context of `tabs/_spec.html`; secrets are hidden by their names."""
    return {
        "spec": json.dumps(_quiet(job.spec), indent=2, ensure_ascii=False),
        "clone": next((item for item in kinds.again_of(job, user) if item.key == "clone"), None),
    }


def _quiet(value: Any) -> Any:
    if isinstance(value, dict):
        return secret_names.mask_params({name: _quiet(inner) for name, inner in value.items()})
    return [_quiet(inner) for inner in value] if isinstance(value, list) else value


def _files(job: Job, user: User) -> dict[str, Any]:
    return _outputs(job)


def _outputs(job: Job) -> dict[str, Any]:
    """Context of `_files.html`."""
    attempt = files.attempt_of(job)
    rows, more = files.listed(job, attempt)
    return {
        "outputs": rows[:FILES_SHOWN],
        "folders": files.by_folder(rows[:FILES_SHOWN]),
        "more": more or len(rows) > FILES_SHOWN,
        "output_attempt": attempt,
        "total_bytes": sum(row.size_bytes for row in rows),
    }


_OF_TAB: Mapping[str, Callable[[Job, User], dict[str, Any]]] = {
    job_tabs.OVERVIEW: _overview,
    job_tabs.CONSOLE: _console,
    job_tabs.FILES: _files,
    job_tabs.SPEC: _spec,
}
