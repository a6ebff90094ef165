"""Machines: all of them, and one."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from workers.core.models import Device, VirtualCluster
from workers.resources.clusters import clusters, cpu_slots
from workers.resources.monitoring import day_chart
from workers.resources.nodes import home, machine_page, mps_policy, nodes


@require_GET
@needs(Action.CLUSTER_VIEW)
def show(request: SignedInRequest) -> HttpResponse:
    """Every node with its load and devices."""
    views = nodes.view_all(request.user)
    gpus = [gpu for view in views for gpu in view.gpus]
    context = {
        "nodes": views,
        "node_uses": [(view, home.uses_of(view)) for view in views],
        "gpus": len(gpus),
        "gpus_free": sum(view.free_gpus for view in views if view.node.state == "live"),
        "gpus_sick": sum(gpu.device.health != Device.Health.OK for gpu in gpus),
        "simulated": any(view.simulated for view in views),
        "slots": cpu_slots.there(),
        "load_words": nodes.LOADS,
        "may_manage": request.user.can(Action.CLUSTER_MANAGE),
        "clusters": clusters.with_usage(VirtualCluster.objects.visible_to(request.user)),
    }
    if not request.htmx:
        day, than = day_chart.days_asked(request.GET.get("day", ""), request.GET.get("than", ""))
        context["chart"] = day_chart.chart(request.user, day, than)
    return render(request, "workers/_cluster.html" if request.htmx else "workers/cluster.html", context)


@require_GET
@needs(Action.CLUSTER_VIEW)
def node(request: SignedInRequest, pk: int) -> HttpResponse:
    """One node: figures, devices, who is on them."""
    view = nodes.view(pk, request.user)
    if view is None:
        raise Http404
    context = {
        "view": view,
        "uses": home.uses_of(view),
        "kept": machine_page.pinned_packages(view.node.name),
        "mps": mps_policy.view(view.node, request.user),
        "services": machine_page.services(view, request.user),
        "events": view.node.events.select_related("device", "by")[:30],
        "may_manage": request.user.can(Action.CLUSTER_MANAGE),
    }
    return render(request, "workers/_node.html" if request.htmx else "workers/node.html", context)
