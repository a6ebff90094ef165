"""Overview page of a virtual cluster: its share of the machines, who uses it, and who waits."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from workers.core.models import Device
from workers.jobs import queue
from workers.resources.clusters import bounds, cluster_use, cpu_slots, members
from workers.resources.clusters.views import clusters

QUEUE_SHOWN = 20


@require_GET
@needs(Action.JOBS_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """What one cluster may use, who uses it, and who waits; for all its members."""
    cluster = clusters.visible(request, pk)
    entries, total = queue.waiting(request.user, cluster=cluster.pk, limit=QUEUE_SHOWN)
    kinds = cluster_use.by_kind(cluster)
    moving = {
        "cluster_shown": cluster,
        "kinds": kinds,
        "cards": any(bounds_of_kind.kind != Device.Kind.CPU for bounds_of_kind in kinds),
        "people": cluster_use.people(cluster),
        "entries": entries,
        "total": total,
        "slots": cpu_slots.there(),
    }
    if request.htmx:
        return render(request, "workers/_cluster_now.html", moving)
    still = {"in_charge": members.deciders(cluster), "bounds": bounds.effective_bounds(cluster)}
    return render(request, "workers/cluster_detail.html", clusters.frame(request, cluster, "overview") | moving | still)
