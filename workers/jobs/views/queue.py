"""The queue: who waits, why, in which place and until when."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from workers.core.models import Job, VirtualCluster
from workers.jobs import job_page, queue

SHOWN = 100  # of those who wait; the API lists more


@require_GET
@needs(Action.JOBS_VIEW)
def show(request: SignedInRequest) -> HttpResponse:
    """The whole queue of the reader's clusters, and what of theirs runs now."""
    requested = request.GET.get("cluster", "")
    cluster = int(requested) if requested.isdecimal() and len(requested) < 19 else None
    mine = request.GET.get("mine") == "1"
    entries, total = queue.waiting(request.user, cluster=cluster, mine=mine, limit=SHOWN)
    running = job_page.for_table(Job.objects.visible_to(request.user).filter(owner=request.user).live())
    context = {
        "entries": entries,
        "total": total,
        "running": running.order_by("-started_at")[:50],
        "clusters": VirtualCluster.objects.visible_to(request.user).values_list("pk", "name"),
    }
    return render(request, "workers/_queue.html" if request.htmx else "workers/queue.html", context)
