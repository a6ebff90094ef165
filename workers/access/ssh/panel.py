"""The part of a job's page about SSH: how to come in, and who is there."""

from __future__ import annotations

from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform import env
from workers.access.ssh import access
from workers.access.ssh.models import SshSession
from workers.core import kinds
from workers.core.models import Job
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel

SHOWN = 20


def context(job: Job, user: User) -> dict[str, Any] | None:
    """Context of `ssh/_panel.html`; None where SSH is off, for kinds without an exec server, and for ended jobs."""
    if not env.SSH_PORT or job.is_final or not kinds.has_exec_server(job.kind):
        return None
    return {
        "may_enter": access.may_enter(user, job),
        "may_end": user.can(Action.JOBS_CONTROL),
        "has_key": user.ssh_keys.exists(),
        "sessions": SshSession.objects.visible_to(user).open().filter(job=job).select_related("user")[:SHOWN],
    }


PANEL = Panel("ssh", "ssh/_panel.html", context, 40, job_tabs.PORTS)
