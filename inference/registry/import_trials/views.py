"""Pages of trials: their pictures, and the version that is made of a way. The rest is a panel of the job's page."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import files, ids
from aiplatform.lib.downloads import send_file
from aiplatform.lib.pages import errors_as_messages, needs
from inference.registry.import_trials import results, trials
from inference.registry.models import ModelTask
from workers.core.runs import RunDir


@needs(Action.MODELS_VIEW)
@require_safe
def trial_picture(request: SignedInRequest, pk: int, place: int) -> HttpResponseBase:
    """One of the pictures, small, for those who may see the trial."""
    rows = ModelTask.objects.visible_to(request.user).filter(act=ModelTask.Act.TRY).select_related("job")
    task: ModelTask = get_object_or_404(rows, pk=pk)
    outputs = RunDir.for_attempt(task.job_id, task.figures.get("attempt") or 0).outputs
    if place >= results.MAX_IMAGES:
        raise Http404
    try:
        descriptor = results.picture(outputs, place)
    except (OSError, files.OutsideRoot):
        raise Http404 from None
    response = send_file(request, descriptor, f"{place}.jpg", inline=True)
    response["Cache-Control"] = "private, max-age=3600"
    return response


@require_POST
@needs(Action.MODELS_MANAGE)
def trial_use(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a version of one of the ways."""
    rows = ModelTask.objects.editable_by(request.user).filter(act=ModelTask.Act.TRY)
    task: ModelTask = get_object_or_404(rows.select_related("job__owner", "made__model"), pk=pk)
    with errors_as_messages(request):
        rank, name = ids.number(request.POST.get("rank", "")) or 0, request.POST.get("name", "").strip()
        version = trials.use(task=task, rank=rank, by=request.user, name=name)
        return redirect(f"{reverse('inference:model-detail', args=[version.model_id])}?version={version.number}")
    return redirect("workers:job", task.job_id)
