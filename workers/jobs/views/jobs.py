"""The parts of a job's page that are fetched again while it moves."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from workers.core.models import Job
from workers.jobs import job_page


def visible(request: SignedInRequest, pk: int) -> Job:
    """The job, or 404 where this reader may not see it."""
    rows = Job.objects.visible_to(request.user).select_related("owner", "cluster")
    job: Job = get_object_or_404(rows, pk=pk)
    return job


@require_GET
@needs(Action.JOBS_VIEW)
def header(request: SignedInRequest, pk: int) -> HttpResponse:
    """The header alone, fetched again whenever the job moved."""
    return render(request, "workers/_job_header.html", job_page.context(visible(request, pk), request.user))


@require_GET
@needs(Action.JOBS_VIEW)
def events(request: SignedInRequest, pk: int) -> HttpResponse:
    """The event log alone; with `?few=1` its newest lines."""
    job, shows_newest = visible(request, pk), request.GET.get("few") == "1"
    rows = job_page.events(job, job_page.NEWEST_EVENTS if shows_newest else job_page.EVENTS_SHOWN)
    return render(request, "workers/_events.html", {"job": job, "events": rows, "few": shows_newest})


@require_GET
@needs(Action.JOBS_VIEW)
def panel(request: SignedInRequest, pk: int, name: str) -> HttpResponse:
    """One of the parts that rooms above add, fetched again whenever the job moved."""
    job = visible(request, pk)
    shown = job_page.panels(job, request.user, only=name)
    if not shown:
        raise Http404
    return render(request, "workers/_panels.html", {"job": job, "panels": shown})
