"""The part of a job's page about its ports."""

from __future__ import annotations

from typing import Any

from accounts.access import sharing
from accounts.access.permissions import Action
from accounts.models import User
from workers.access.proxy import addresses, published_ports
from workers.access.proxy.models import PublishedPort
from workers.core import kinds
from workers.core.models import Job
from workers.jobs import job_tabs


def page_of(row: PublishedPort) -> str:
    """The page that shows a port: its job's."""
    return job_tabs.path(row.job_id, job_tabs.PORTS)


def shown(job: Job, user: User) -> dict[str, Any] | None:
    """Context of `ports/_panel.html`; None for jobs with unreachable ports."""
    if not addresses.are_ports_enabled() or job.is_final or not kinds.has_exec_server(job.kind):
        return None
    rows = list(PublishedPort.objects.filter(job=job))
    for row in rows:
        row.shares = sharing.shares_of(row)
    return {
        "rows": rows,
        "may_change": user.can(Action.JOBS_CONTROL) and (job.owner_id == user.pk or user.sees_everything),
        "own": job.owner_id == user.pk,
        "full": len(rows) >= published_ports.MAX_PORTS,
        "named": addresses.has_host_per_port(),
        "first": published_ports.PORTS[0],
        "last": published_ports.PORTS[-1],
    }
