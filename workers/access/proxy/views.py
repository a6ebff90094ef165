"""Pages of ports: the list of those one may open, and what can be done with one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.pages import errors_as_messages, needs
from workers.access.proxy import addresses, port_access, published_ports
from workers.access.proxy.forms import PublishForm
from workers.access.proxy.models import PublishedPort
from workers.core.models import Job
from workers.core.states import JobState
from workers.jobs import job_tabs

SHOWN = 200


@needs(Action.JOBS_VIEW)
@require_safe
def index(request: SignedInRequest) -> HttpResponse:
    """Ports of running jobs that this person may open: own and shared ones."""
    rows = PublishedPort.objects.openable_by(request.user).filter(job__state=JobState.RUNNING)
    rows = rows.select_related("job__owner").order_by("-job_id", "pk")[:SHOWN]
    return render(request, "ports/list.html", {"rows": rows, "named": addresses.has_host_per_port()})


@require_POST
@needs(Action.JOBS_CONTROL)
def publish(request: SignedInRequest, pk: int) -> HttpResponse:
    """Publish a port of an own job."""
    job: Job = get_object_or_404(Job.objects.editable_by(request.user), pk=pk)
    form = PublishForm(request.POST)
    if form.is_valid():
        with errors_as_messages(request):
            row = published_ports.publish(job, by=request.user, **form.cleaned_data)
            messages.info(request, _("Published as %(name)s. Open it when your program listens.") % {"name": row})
    for errors in form.errors.values():
        messages.error(request, " ".join(map(str, errors)))
    return redirect(job_tabs.path(pk, job_tabs.PORTS))


@require_POST
@needs(Action.JOBS_CONTROL)
def withdraw(request: SignedInRequest, pk: int, name: str) -> HttpResponse:
    """Close a port of an own job."""
    row = get_object_or_404(PublishedPort.objects.editable_by(request.user), job=pk, name=name)
    with errors_as_messages(request):
        published_ports.withdraw(row, by=request.user)
        messages.info(request, _("Unpublished. Open connections are closed within seconds."))
    return redirect(job_tabs.path(pk, job_tabs.PORTS))


@require_POST
@needs(Action.JOBS_VIEW)
def open_port(request: SignedInRequest, pk: int, name: str) -> HttpResponse:
    """Go to a port with a ticket that works once.

    The ticket comes in a page that goes on by itself, as browsers let no form of ours end on another origin.
    """
    if hasattr(request, "behind"):
        raise NotAllowed(_("You are acting for another user. Only that user can open their ports."))
    row = get_object_or_404(PublishedPort.objects.visible_to(request.user).select_related("job"), job=pk, name=name)
    opened = port_access.open_port(
        row,
        user=request.user,
        host=request.get_host(),
        secure=request.is_secure(),
        session_key=request.session.session_key or "",
    )
    port_access.await_origin()
    answer = render(request, "ports/opening.html", {"row": row, "url": opened.url})
    answer["Refresh"] = f"0; url={opened.url}"
    answer["Referrer-Policy"] = "no-referrer"
    answer["Cache-Control"] = "no-store"
    return answer
