"""The buttons of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.pages import needs
from workers.core.models import Job
from workers.jobs import actions, job_page
from workers.jobs.forms.resource_request import PriorityForm
from workers.jobs.views.jobs import visible

REQUESTS: dict[str, tuple[Callable[..., Job], Any]] = {
    "pause": (actions.pause, _("Asked to pause.")),
    "continue": (actions.resume, _("Asked to go on.")),
    "suspend": (actions.suspend, _("Asked to save and to give its cards back.")),
    "stop": (actions.stop, _("Asked to stop.")),
    "finish": (actions.finish, _("Asked to finish and keep the result.")),
    "force": (actions.force_stop, _("Asked to kill it at once.")),
    "restore": (actions.restore, _("Queued again from its newest checkpoint.")),
}


@require_POST
@needs(Action.JOBS_CONTROL)
def act(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Press one of the buttons. Returns the new header to htmx, otherwise redirects to the previous page."""
    if verb not in REQUESTS:
        raise Http404
    visible_jobs = Job.objects.visible_to(request.user)
    own = visible_jobs.forcible_by(request.user) if verb == "force" else Job.objects.editable_by(request.user)
    job: Job = get_object_or_404(own, pk=pk)
    request_it, text = REQUESTS[verb]
    try:
        request_it(job, by=request.user)
    except DomainError as refusal:
        if request.htmx:
            raise
        messages.error(request, refusal.message)
    else:
        if not request.htmx:
            messages.info(request, text)
    if request.htmx:
        return render(request, "workers/_job_header.html", job_page.context(visible(request, pk), request.user))
    return redirect(_back(request) or reverse("workers:job", args=[pk]))


@require_POST
@needs(Action.JOBS_CONTROL)
def priority(request: SignedInRequest, pk: int) -> HttpResponse:
    """Give a waiting job another priority. Answers the new header to htmx."""
    job: Job = get_object_or_404(Job.objects.editable_by(request.user), pk=pk)
    form = PriorityForm(request.POST, user=request.user)
    try:
        if not form.is_valid():
            raise Invalid(_("Give a priority from 0 to 99."), field="priority")
        actions.prioritise(job, form.requested(), by=request.user)
    except DomainError as refusal:
        if request.htmx:
            raise
        messages.error(request, refusal.message)
    if request.htmx:
        return render(request, "workers/_job_header.html", job_page.context(visible(request, pk), request.user))
    return redirect(_back(request) or reverse("workers:job", args=[pk]))


def _back(request: HttpRequest) -> str:
    back = request.POST.get("next", "")
    return back if url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()) else ""
