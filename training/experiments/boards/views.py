"""The button that opens a job's event files in TensorBoard."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from training.experiments.boards import services
from workers.core.models import Job
from workers.jobs import job_tabs


@require_POST
@needs(Action.JOBS_SUBMIT)
def show(request: SignedInRequest, pk: int) -> HttpResponse:
    """Start a TensorBoard, and go to its page, where it is opened as soon as it runs."""
    source: Job = get_object_or_404(Job.objects.visible_to(request.user).select_related("cluster"), pk=pk)
    with errors_as_messages(request):
        source = services.show(source, by=request.user)
    return redirect(job_tabs.path(source.pk, job_tabs.PORTS))
