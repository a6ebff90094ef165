"""Sections of the home page about jobs: running and queued work, approvals in clusters of the user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.times import format_duration
from aiplatform.pages.home.approvals import ApprovalSource, Pending
from aiplatform.pages.home.sections import Section
from workers.core import kinds
from workers.core.models import Job
from workers.core.models.requests import Approval, TimeRequest
from workers.core.states import FINAL
from workers.jobs import buttons
from workers.jobs.buttons import Button

MAX_JOBS = 8
MAX_ENDED = 6
ROW_ACTIONS = ("pause", "continue", "finish", "stop")


@dataclass(frozen=True)
class JobRow:
    """A job with what its row shows."""

    job: Job
    url: str
    kind: str
    icon: str
    buttons: list[Button]


def running_jobs(user: User) -> dict[str, Any] | None:
    """Return running and queued jobs of the user, for operators those of all users, newest first.

    {rows, more, of_all}; None for users without any.
    """
    of_all = user.can(Action.CLUSTER_MANAGE)
    live = Job.objects.visible_to(user) if of_all else Job.objects.filter(owner=user)
    live = live.exclude(state__in=FINAL).select_related("cluster", "owner", *kinds.related())
    live = narrow(live, cluster=("name", "closed_at"), owner=USER_NAMES)
    jobs = list(live.order_by("-pk")[: MAX_JOBS + 1])
    if not jobs and not of_all:
        return None
    may_control = user.can(Action.JOBS_CONTROL)
    rows = [_row(job, may_control) for job in jobs[:MAX_JOBS]]
    return {"rows": rows, "more": len(jobs) > MAX_JOBS, "of_all": of_all}


def _row(job: Job, may_control: bool) -> JobRow:
    allowed = [button for button in buttons.shown(job) if button.allowed and button.verb in ROW_ACTIONS]
    icon = kinds.icon_of(job.kind)
    return JobRow(job, kinds.url_of(job), kinds.label_of(job.kind), icon, allowed if may_control else [])


def ended_jobs(user: User) -> dict[str, Any] | None:
    """Return the newest jobs of all users that have ended: {rows: [{job, url, kind, icon}]}."""
    ended = Job.objects.visible_to(user).filter(state__in=FINAL).select_related("owner", *kinds.related())
    jobs = narrow(ended, owner=USER_NAMES).order_by("-pk")[:MAX_ENDED]  # by number: the time of the end has no index
    rows = [
        {"job": job, "url": kinds.url_of(job), "kind": kinds.label_of(job.kind), "icon": kinds.icon_of(job.kind)}
        for job in jobs
    ]
    return {"rows": rows} if rows else None


def pending_approvals(user: User, limit: int) -> Iterator[Pending]:
    """Yield jobs that may start once the user approves them."""
    rows = Approval.objects.answerable_by(user).holding().select_related("job__owner", "job__cluster")
    for row in rows.order_by("pk")[:limit]:
        detail = _("%(user)s in %(cluster)s") % {"user": row.job.owner.get_full_name(), "cluster": row.job.cluster.name}
        yield Pending(row.job.name, detail, reverse("workers:cluster-approvals", args=[row.job.cluster_id]),
                      row.requested_at)  # fmt: skip


def pending_time_requests(user: User, limit: int) -> Iterator[Pending]:
    """Yield requests for more run time that the user may answer."""
    rows = TimeRequest.objects.answerable_by(user).filter(answer=TimeRequest.Answer.OPEN)
    rows = rows.exclude(job__state__in=FINAL).select_related("job__owner", "job__cluster")
    for row in rows.order_by("pk")[:limit]:
        detail = _("%(span)s more, requested by %(user)s") % {
            "span": format_duration(row.span), "user": row.job.owner.get_full_name(),
        }  # fmt: skip
        yield Pending(row.job.name, detail, reverse("workers:cluster-requests", args=[row.job.cluster_id]),
                      row.requested_at)  # fmt: skip


JOBS = Section("jobs", "home/_jobs.html", running_jobs, needs=Action.JOBS_VIEW, order=20, live=True)
ENDED = Section("ended", "home/_ended.html", ended_jobs, needs=Action.CLUSTER_MANAGE, order=25, live=True)
APPROVALS = ApprovalSource(
    "jobs", gettext_lazy("Job approval"), "check", pending_approvals, needs=Action.CLUSTER_ADMINISTER
)
TIME_REQUESTS = ApprovalSource(
    "time", gettext_lazy("More run time"), "wait", pending_time_requests, needs=Action.CLUSTER_ADMINISTER
)
