"""Pages of arrays of jobs, and the form by which a waiting job follows others."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_shown_on, needs
from workers.core import kinds
from workers.core.models import Job, JobArray
from workers.core.states import FINAL, JobState
from workers.jobs import arrays, following, job_page
from workers.jobs.forms.following import FollowForm, followed_by
from workers.jobs.orders import ARRAY_ORDERING


@require_safe
@needs(Action.JOBS_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """An array with its jobs by index; `?ordering=`. htmx gets the table alone."""
    array: JobArray = get_object_or_404(
        JobArray.objects.visible_to(request.user).select_related("owner", "cluster"), pk=pk
    )
    page = ARRAY_ORDERING.page(
        request,
        job_page.with_places(Job.objects.visible_to(request.user).filter(array=array).prefetch_related("attempts")),
    )
    counts = arrays.states(array)
    context = {
        "array": array,
        "page": page,
        "counts": [(state.value, state.label, counts[state]) for state in JobState if counts.get(state)],
        "alive": any(state not in FINAL for state in counts),
        "kind_label": kinds.label_of(page.rows[0].kind) if page.rows else "",
        "may_control": request.user.can(Action.JOBS_CONTROL)
        and JobArray.objects.editable_by(request.user).filter(pk=pk).exists(),
    }
    return render(request, "workers/_array_jobs.html" if request.htmx else "workers/array.html", context)


@require_POST
@needs(Action.JOBS_CONTROL)
def stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """Stop all jobs of an array that have not ended."""
    array: JobArray = get_object_or_404(JobArray.objects.editable_by(request.user), pk=pk)
    count = arrays.stop(array, by=request.user)
    text = ngettext("Stop of %(count)s job requested.", "Stop of %(count)s jobs requested.", count) % {"count": count}
    messages.info(request, text)
    return redirect("workers:array", pk)


@require_http_methods(["GET", "POST"])
@needs(Action.JOBS_CONTROL)
def follow(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let a waiting job follow other jobs than before."""
    job: Job = get_object_or_404(Job.objects.visible_to(request.user).editable_by(request.user), pk=pk)
    form = FollowForm(request.POST or None, initial=followed_by(job))
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            following.change(job, form.following(), by=request.user)
            return redirect(kinds.url_of(job) or "workers:queue")
    context = {"job": job, "job_url": kinds.url_of(job), "form": form, "waits": job.state == JobState.QUEUED}
    return render(request, "workers/job_follow.html", context, status=422 if form.errors else 200)
