"""Who in a cluster goes first: decided by who is in charge of it, for jobs that wait."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from workers.core.models import Job
from workers.core.states import JobState
from workers.jobs import actions
from workers.jobs.forms.priorities import PriorityForm
from workers.resources.clusters.views.clusters import administered, frame

SHOWN = 100


@require_GET
@needs(Action.CLUSTER_ADMINISTER)
def show(request: SignedInRequest, pk: int) -> HttpResponse:
    """The jobs of a cluster that wait, in their order."""
    cluster = administered(request, pk)
    rows = cluster.jobs.filter(state=JobState.QUEUED).select_related("owner")
    waiting = rows.order_by(F("position").asc(nulls_last=True), "-priority", "queued_at", "pk")[:SHOWN]
    context = frame(request, cluster, "priorities") | {"waiting": waiting, "urgent": Job.URGENT}
    return render(request, "workers/cluster_priorities.html", context)


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def change(request: SignedInRequest, pk: int, job: int) -> HttpResponse:
    """Change the priority of one of them."""
    cluster = administered(request, pk)
    row = get_object_or_404(cluster.jobs, pk=job)
    form = PriorityForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("A priority must be a number from 0 to %(most)s.") % {"most": Job.URGENT})
        return redirect("workers:cluster-priorities", pk)
    with errors_as_messages(request):
        actions.prioritise(row, form.cleaned_data["priority"], by=request.user)
        messages.info(request, _("Priority of %(job)s changed.") % {"job": row.name})
    return redirect("workers:cluster-priorities", pk)
