"""Parts of every job's page that jobs themselves add: what comes before and after it, and where it runs."""

from __future__ import annotations

from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.columns import narrow
from workers.core.models import Allocation, Dependency, Job
from workers.core.states import JobState
from workers.jobs.job_page import Panel

SHOWN = 50
SHOWN_OF_JOB = ("name", "state", "progress", "eta_s", "phase", "phase_done", "phase_total", "started_at")


def order_context(job: Job, user: User) -> dict[str, Any] | None:
    """The jobs it follows and those that follow it, its retries and its array; None where there is nothing of it."""
    before = list(narrow(job.dependencies.select_related("on"), on=SHOWN_OF_JOB)[:SHOWN])
    behind = list(narrow(job.followers.select_related("job"), job=SHOWN_OF_JOB)[:SHOWN])
    may_follow = (
        job.state == JobState.QUEUED
        and user.can(Action.JOBS_CONTROL)
        and (job.owner_id == user.pk or user.sees_everything)
    )
    if not (before or behind or job.retries or job.array_id or may_follow):
        return None
    return {
        "before": [(row.on, row.needs == Dependency.Needs.SUCCESS) for row in before],
        "behind": [row.job for row in behind],
        "refresh": any(not item.is_final for item in (*(row.on for row in before), *(row.job for row in behind))),
        "may_follow": may_follow,
    }


def places_context(job: Job, user: User) -> dict[str, Any] | None:
    """Where its newest attempt runs or ran, where the head of the page does not say all: several nodes, or ports."""
    ranks = ranks_of(job)
    is_plain = len(ranks) == 1 and not ranks[min(ranks)]["ports"]
    return {"ranks": list(ranks.items()), "live": job.is_live} if ranks and not is_plain else None


def ranks_of(job: Job) -> dict[int, dict[str, Any]]:
    """Each machine of its newest attempt by rank: {"node", "devices": what it holds there, "ports"}."""
    rows = Allocation.objects.filter(attempt__job=job, attempt__number=job.attempt_number)
    ranks: dict[int, dict[str, Any]] = {}
    for held in rows.select_related("node", "device").order_by("rank", "device__index"):
        item = ranks.setdefault(held.rank, {"node": held.node, "devices": [], "ports": []})
        item["devices"].append(held)
        if held.port:
            item["ports"].append(held.port)
    return dict(sorted(ranks.items()))


PANELS = (
    Panel("order", "workers/_order_panel.html", order_context, 10),
    Panel("places", "workers/_places_panel.html", places_context, 15),
)
