"""Pages of SSH: a one-time password, and the end of a session. The panel itself is `workers.access.ssh.panel`."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError, NotAllowed
from aiplatform.lib.pages import needs
from workers.access.ssh import passwords, sessions
from workers.access.ssh.models import SshSession
from workers.jobs import job_tabs
from workers.jobs.views.jobs import visible


@never_cache
@require_POST
@needs(Action.JOBS_CONTROL)
def password(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a one-time password and show it, once."""
    if hasattr(request, "behind"):
        raise NotAllowed(_("You are acting for another user. Only that user can enter their jobs."))
    job = visible(request, pk)
    try:
        made, secret = passwords.make(job, by=request.user)
    except DomainError as refusal:
        messages.error(request, refusal.message)
        return redirect(job_tabs.path(job.pk, job_tabs.PORTS))
    context = {
        "job": job,
        "job_url": job_tabs.path(job.pk, job_tabs.PORTS),
        "secret": secret,
        "expires_at": made.expires_at,
    }
    return render(request, "ssh/password.html", context)


@require_POST
@needs(Action.JOBS_CONTROL)
def session_end(request: SignedInRequest, pk: int, session: int) -> HttpResponse:
    """Cut one session of a job."""
    rows = SshSession.objects.visible_to(request.user).select_related("job", "user")
    row: SshSession = get_object_or_404(rows, pk=session, job=pk)
    try:
        sessions.request_end(row, by=request.user)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.info(request, _("The session ends within a few seconds."))
    return redirect(job_tabs.path(row.job_id, job_tabs.PORTS))
