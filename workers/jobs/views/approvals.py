"""Approvals of a cluster: what waits for one, and the answers."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from workers.core import kinds
from workers.core.models import Approval
from workers.jobs import approval
from workers.jobs.forms.approvals import ApprovalForm
from workers.resources.clusters.views.clusters import administered, frame

ANSWERED_SHOWN = 50


@require_GET
@needs(Action.CLUSTER_ADMINISTER)
def show(request: SignedInRequest, pk: int) -> HttpResponse:
    """What waits for an approval in a cluster, and what was answered."""
    cluster = administered(request, pk)
    rows = Approval.objects.visible_to(request.user)
    waiting = list(rows.waiting_in(cluster))
    for row in waiting:
        row.form = ApprovalForm(prefix=str(row.pk))
        row.facts = kinds.facts_of(row.job)
        row.kind_label = kinds.label_of(row.job.kind)
    context = frame(request, cluster, "approvals") | {
        "waiting": waiting,
        "answered": rows.answered_in(cluster)[:ANSWERED_SHOWN],
    }
    return render(request, "workers/cluster_approvals.html", context)


@require_POST
@needs(Action.CLUSTER_ADMINISTER)
def answer(request: SignedInRequest, pk: int) -> HttpResponse:
    """Approve or refuse one job."""
    rows = Approval.objects.visible_to(request.user).answerable_by(request.user).select_related("job")
    row: Approval = get_object_or_404(rows, pk=pk)
    form = ApprovalForm(request.POST, prefix=str(pk))
    grant = request.POST.get("answer") == "grant"
    if form.is_valid():
        with errors_as_messages(request):
            approval.answer(row, grant=grant, by=request.user, word=form.cleaned_data["word"])
            messages.info(
                request,
                _("Approved; it starts as soon as resources are free.")
                if grant
                else _("Rejected; the owner was notified."),
            )
    else:
        messages.error(request, _("A message can have at most 300 characters."))
    return redirect("workers:cluster-approvals", row.job.cluster_id)
