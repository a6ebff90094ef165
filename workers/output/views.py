"""The page of a job for kinds without one of their own: its head, what it runs, log, curves, outputs, events."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib.pages import needs
from aiplatform.navigation import navigation
from workers import kinds
from workers.jobs import job_page
from workers.jobs.views.jobs import visible
from workers.models import Job
from workers.output import files

FILES_SHOWN = 200  # the download holds all of them


@require_GET
@needs(Action.JOBS_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The kind's own page, or the generic one for a kind without."""
    job = visible(request, pk)
    url = kinds.url_of(job)
    if url and url != request.path:
        return redirect(url)
    kind = kinds.KINDS.find(job.kind)
    list_url = kind.list_path() if kind else ""
    context = {
        **job_page.context(job, request.user),
        **_outputs(job),
        "facts": kinds.facts_of(job),
        "panels": job_page.panels(job, request.user),
        "list_url": list_url,
        "navigation": navigation(list_url or request.path, request.user.actions()),  # its list is where one is
        "list_label": kind.plural_label() if kind else "",
    }
    return render(request, "workers/job_detail.html", context)


@require_GET
@needs(Action.JOBS_VIEW)
def outputs(request: SignedInRequest, pk: int) -> HttpResponse:
    """The outputs alone, fetched again whenever the job moved."""
    job = visible(request, pk)
    return render(request, "workers/_files.html", {"job": job, **_outputs(job)})


def _outputs(job: Job) -> dict[str, Any]:
    """Context of `_files.html`."""
    attempt = files.attempt_of(job)
    rows, more = files.listed(job, attempt)
    return {
        "outputs": rows[:FILES_SHOWN],
        "more": more or len(rows) > FILES_SHOWN,
        "output_attempt": attempt,
        "total_bytes": sum(row.size_bytes for row in rows),
    }
