"""Virtual clusters, for administrators."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import needs, refusals_shown_on
from workers.forms import ClusterForm, MembersForm
from workers.models import VirtualCluster
from workers.services import clusters


def _cluster(request: SignedInRequest, pk: int) -> VirtualCluster:
    found: VirtualCluster = get_object_or_404(VirtualCluster.objects.visible_to(request.user), pk=pk)
    return found


@require_GET
@needs(Action.CLUSTER_MANAGE)
def index(request: SignedInRequest) -> HttpResponse:
    """All virtual clusters."""
    rows = clusters.with_figures(VirtualCluster.objects.visible_to(request.user))
    return render(request, "workers/clusters.html", {"clusters": rows})


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def create(request: SignedInRequest) -> HttpResponse:
    """A new cluster."""
    form = ClusterForm(request.POST or None)
    if form.is_valid():
        with refusals_shown_on(form):
            cluster = clusters.save(None, **form.limits())
            return redirect("workers:cluster-detail", cluster.pk)
    return render(request, "workers/cluster_form.html", {"form": form}, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Name and limits."""
    cluster = _cluster(request, pk)
    form = ClusterForm(request.POST or None, initial=ClusterForm.initial_of(cluster))
    if form.is_valid():
        with refusals_shown_on(form):
            clusters.save(cluster, **form.limits())
            messages.info(request, _("Saved. New limits count from the next start on."))
            return redirect("workers:cluster-detail", cluster.pk)
    context = {"form": form, "cluster_shown": cluster}
    return render(request, "workers/cluster_form.html", context, status=422 if form.errors else 200)


@require_GET
@needs(Action.CLUSTER_MANAGE)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Limits and members of one cluster."""
    return _page(request, _cluster(request, pk), MembersForm(cluster=_cluster(request, pk)))


def _page(request: SignedInRequest, cluster: VirtualCluster, form: MembersForm) -> HttpResponse:
    members = cluster.memberships.select_related("user").order_by("user__username")
    context = {"cluster_shown": cluster, "members": members, "form": form}
    return render(request, "workers/cluster_detail.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def add_members(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let people in."""
    cluster = _cluster(request, pk)
    form = MembersForm(request.POST, cluster=cluster)
    if not form.is_valid():
        return _page(request, cluster, form)
    added = clusters.add_members(cluster, form.cleaned_data["people"])
    messages.info(request, ngettext("%(n)s person added.", "%(n)s people added.", added) % {"n": added})
    return redirect("workers:cluster-detail", pk)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def remove_member(request: SignedInRequest, pk: int, person: int) -> HttpResponse:
    """Take somebody out."""
    cluster = _cluster(request, pk)
    membership = get_object_or_404(cluster.memberships.select_related("user"), user_id=person)
    try:
        clusters.remove_member(cluster, membership.user)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    return redirect("workers:cluster-detail", pk)


@require_POST
@needs(Action.CLUSTER_MANAGE)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete an unused cluster."""
    cluster = _cluster(request, pk)
    try:
        clusters.delete(cluster)
    except DomainError as refusal:
        messages.error(request, refusal.message)
        return redirect("workers:cluster-detail", pk)
    messages.info(request, _("Cluster %(name)s is deleted.") % {"name": cluster.name})
    return redirect("workers:clusters")
