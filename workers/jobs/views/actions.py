"""Views behind the buttons of a job: pause, stop, …, and its priority."""

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

#: verb in the URL → (service that requests the action, message after success)
REQUESTS: dict[str, tuple[Callable[..., Job], Any]] = {
    "pause": (actions.pause, _("Pause requested.")),
    "continue": (actions.resume, _("Resume requested.")),
    "suspend": (actions.suspend, _("Requested to save a checkpoint and release its GPUs.")),
    "stop": (actions.stop, _("Stop requested.")),
    "finish": (actions.finish, _("Early finish requested; the result is kept.")),
    "force": (actions.force_stop, _("Immediate kill requested.")),
    "restore": (actions.restore, _("Requeued from the newest checkpoint.")),
}


@require_POST
@needs(Action.JOBS_CONTROL)
def act(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Request an action on a job. Responds to htmx with the updated header, otherwise redirects."""
    if verb not in REQUESTS:
        raise Http404
    visible_jobs = Job.objects.visible_to(request.user)
    allowed_jobs = visible_jobs.forcible_by(request.user) if verb == "force" else Job.objects.editable_by(request.user)
    job: Job = get_object_or_404(allowed_jobs, pk=pk)
    request_action, success_message = REQUESTS[verb]
    try:
        request_action(job, by=request.user)
    except DomainError as error:
        if request.htmx:
            raise  # the middleware responds with the error
        messages.error(request, error.message)
    else:
        if not request.htmx:
            messages.info(request, success_message)
    if request.htmx:
        return render(request, "workers/_job_header.html", job_page.context(visible(request, pk), request.user))
    return redirect(_previous_page(request) or reverse("workers:job", args=[pk]))


@require_POST
@needs(Action.JOBS_CONTROL)
def priority(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change the priority of a queued job. Responds to htmx with the updated header, otherwise redirects."""
    job: Job = get_object_or_404(Job.objects.editable_by(request.user), pk=pk)
    form = PriorityForm(request.POST, user=request.user)
    try:
        if not form.is_valid():
            raise Invalid(_("Enter a priority from 0 to 99."), field="priority")
        actions.prioritise(job, form.requested(), by=request.user)
    except DomainError as error:
        if request.htmx:
            raise
        messages.error(request, error.message)
    if request.htmx:
        return render(request, "workers/_job_header.html", job_page.context(visible(request, pk), request.user))
    return redirect(_previous_page(request) or reverse("workers:job", args=[pk]))


def _previous_page(request: HttpRequest) -> str:
    """Return the address in the field `next` if it is on this host, otherwise ""."""
    address = request.POST.get("next", "")
    return address if url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure()) else ""
