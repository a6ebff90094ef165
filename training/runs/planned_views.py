"""The page of a training that waits for its data."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from datasets.services import report_wording
from training.runs import planned
from training.runs.models import PlannedTraining

ACTS = {"retry": planned.retry, "cancel": planned.cancel}


def _find(request: SignedInRequest, pk: int) -> PlannedTraining:
    rows = PlannedTraining.objects.visible_to(request.user).select_related("dataset", "data_import", "training")
    plan: PlannedTraining = get_object_or_404(rows, pk=pk)
    return plan


@needs(Action.TRAINING_VIEW)
@require_safe
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Show the progress of the import; redirect to the training once it was started. htmx polls the inner part."""
    row = _find(request, pk)
    planned.nudge_if_due(row)
    if row.training_id:
        url = reverse("training:job-detail", args=[row.training_id])
        return HttpResponse(status=204, headers={"HX-Redirect": url}) if request.htmx else redirect(url)
    source = row.data_import
    newest = row.dataset.newest if row.dataset else None
    context = {
        "row": row,
        "version": newest if row.state == PlannedTraining.State.FAILED else None,
        "source": source,
        "phase": report_wording.PHASES.get(source.phase, source.get_state_display()) if source else "",
        "share": min(100, round(100 * source.done / source.total)) if source and source.total else None,
    }
    return render(request, "training/_planned.html" if request.htmx else "training/planned.html", context)


@needs(Action.TRAINING_SUBMIT)
@require_POST
def act(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Try it again, or give it up."""
    row = _find(request, pk)
    if verb not in ACTS:
        raise Http404
    with errors_as_messages(request):
        ACTS[verb](row)
    return redirect("training:job-list") if verb == "cancel" else redirect("training:planned", pk)
