"""Virtual clusters: the list, the forms, and what everybody in a cluster sees of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, is_name_confirmed, needs
from workers.core.models import Approval, Device, TimeRequest, VirtualCluster
from workers.resources.clusters import bounds, clusters, cpu_slots, quotas, resource_groups
from workers.resources.clusters.forms.clusters import BoundsForm, ClusterForm, bounds_forms


def visible(request: SignedInRequest, pk: int) -> VirtualCluster:
    """The cluster, for its members; not found for others."""
    cluster: VirtualCluster = get_object_or_404(VirtualCluster.objects.visible_to(request.user), pk=pk)
    return cluster


def administered(request: SignedInRequest, pk: int) -> VirtualCluster:
    """The cluster, for its administrators."""
    rows = VirtualCluster.objects.visible_to(request.user).administered_by(request.user)
    cluster: VirtualCluster = get_object_or_404(rows, pk=pk)
    return cluster


def frame(request: SignedInRequest, cluster: VirtualCluster, at: str) -> dict[str, Any]:
    """What every page of a cluster shows: its name, the tabs, what the reader may do."""
    visible_clusters = VirtualCluster.objects.visible_to(request.user)
    in_charge = visible_clusters.administered_by(request.user).filter(pk=cluster.pk).exists()
    approvals = Approval.objects.visible_to(request.user).waiting_in(cluster)
    return {
        "approvals_waiting": approvals.count() if in_charge else 0,
        "cluster_shown": cluster,
        "at": at,
        "manages": request.user.can(Action.CLUSTER_MANAGE),
        "administers": in_charge,
        "requests_waiting": TimeRequest.objects.visible_to(request.user).waiting_in(cluster).count()
        if in_charge
        else 0,
    }


@require_GET
@needs(Action.CLUSTER_MANAGE)
def index(request: SignedInRequest) -> HttpResponse:
    """All virtual clusters, and the devices without a guarantee."""
    rows = clusters.with_usage(VirtualCluster.objects.visible_to(request.user))
    kinds = quotas.detect()
    cards = any(kind.kind != Device.Kind.CPU for kind in kinds)
    shown = {"clusters": rows, "kinds": kinds, "cards": cards, "in_vain": resource_groups.list_unusable()}
    shown["slots"] = cpu_slots.there()
    return render(request, "workers/clusters.html", shown)


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def create(request: SignedInRequest) -> HttpResponse:
    """A new cluster."""
    form = ClusterForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            cluster = clusters.save(None, **form.values(), by=request.user)
            return redirect("workers:cluster-members", cluster.pk)
    else:
        check_valid_fields(form, clusters.check_name)
    context = {"form": form, "slots": cpu_slots.there()}
    return render(request, "workers/cluster_form.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Name and limits."""
    cluster = visible(request, pk)
    form = ClusterForm(request.POST or None, cluster=cluster)
    if form.is_valid():
        with errors_shown_on(form):
            clusters.save(cluster, **form.values(), by=request.user)
            messages.info(request, _("Saved. The new limits apply from the next start."))
            return redirect("workers:cluster-detail", cluster.pk)
        cluster.refresh_from_db()
    else:
        check_valid_fields(form, clusters.check_name, cluster=cluster)
    context = {"form": form, "cluster_shown": cluster, "slots": cpu_slots.there()}
    return render(request, "workers/cluster_form.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def edit_bounds(request: SignedInRequest, pk: int) -> HttpResponse:
    """Cores and memory of one job by device kind; a change counts for the next job."""
    cluster = visible(request, pk)
    forms = bounds_forms(cluster)
    if request.method == "POST":
        kind = request.POST.get("kind", "")
        if kind not in {form.kind for form in forms}:
            raise Http404
        sent = BoundsForm(request.POST, cluster=cluster, kind=kind)
        if sent.is_valid():
            with errors_shown_on(sent):
                bounds.set_bounds(cluster, kind, sent.values(), by=request.user)
                messages.info(request, _("Saved. The limits apply to the next job."))
                return redirect("workers:cluster-bounds", pk)
        forms = [sent if form.kind == kind else form for form in forms]
    context = frame(request, cluster, "bounds") | {"forms": forms}
    return render(request, "workers/cluster_bounds.html", context, status=422 if any(f.errors for f in forms) else 200)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete an unused cluster."""
    cluster = visible(request, pk)
    if not is_name_confirmed(request, cluster.name):
        return redirect("workers:cluster-detail", pk)
    try:
        clusters.delete(cluster, by=request.user)
    except DomainError as refusal:
        messages.error(request, refusal.message)
        return redirect("workers:cluster-detail", pk)
    messages.info(request, _("Cluster %(name)s deleted.") % {"name": cluster.name})
    return redirect("workers:clusters")
