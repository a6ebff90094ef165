"""Asking for more run time, and answering."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import units
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from workers.core import kinds, run_time
from workers.core.models import Job, TimeRequest
from workers.jobs import more_time
from workers.jobs.forms.more_time import AnswerForm, MoreTimeForm
from workers.resources.clusters.views.clusters import administered, frame

ANSWERED_SHOWN = 50


@require_http_methods(["GET", "POST"])
@needs(Action.JOBS_CONTROL)
def request_time(request: SignedInRequest, pk: int) -> HttpResponse:
    """Request more time for one's own job."""
    rows = Job.objects.visible_to(request.user).editable_by(request.user).select_related("cluster")
    job: Job = get_object_or_404(rows, pk=pk)
    form = MoreTimeForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            more_time.request_time(job, **form.cleaned_data, by=request.user)
            messages.info(request, _("Requested. You are notified of the decision."))
            return redirect(kinds.url_of(job) or "workers:queue")
    context = {
        "job": job,
        "job_url": kinds.url_of(job),
        "form": form,
        "limit": run_time.runtime(job),
        "requests": job.time_requests.select_related("answered_by"),
        "open": job.time_requests.filter(answer=TimeRequest.Answer.OPEN).exists(),
    }
    return render(request, "workers/more_time.html", context, status=422 if form.errors else 200)


@require_GET
@needs(Action.CLUSTER_ADMINISTER)
def requests(request: SignedInRequest, pk: int) -> HttpResponse:
    """What people of a cluster ask for, and what was answered."""
    cluster = administered(request, pk)
    waiting = list(TimeRequest.objects.visible_to(request.user).waiting_in(cluster))
    for row in waiting:
        row.form = AnswerForm(initial={"hours": units.number(row.span.total_seconds() / 3600)}, prefix=str(row.pk))
        row.job_limit = run_time.runtime(row.job)
    context = frame(request, cluster, "requests") | {
        "waiting": waiting,
        "answered": TimeRequest.objects.visible_to(request.user).answered_in(cluster)[:ANSWERED_SHOWN],
    }
    return render(request, "workers/cluster_requests.html", context)


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def answer(request: SignedInRequest, pk: int) -> HttpResponse:
    """Grant or deny one request."""
    rows = TimeRequest.objects.visible_to(request.user).answerable_by(request.user).select_related("job")
    row: TimeRequest = get_object_or_404(rows, pk=pk)
    form = AnswerForm(request.POST, prefix=str(pk))
    grant = request.POST.get("answer") == "grant"
    if form.is_valid():
        values = form.cleaned_data
        hours = values["hours"] if grant else None
        with errors_as_messages(request):
            more_time.answer(row, grant=grant, by=request.user, hours=hours, word=values["word"])
            messages.info(
                request, _("Granted; applies immediately.") if grant else _("Denied; the owner was notified.")
            )
    else:
        messages.error(request, _("Enter the number of hours, greater than 0."))
    return redirect("workers:cluster-requests", row.job.cluster_id)
