"""Signs of life by SSH, for whoever judges whether a job is idle."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from workers.access.ssh.models import SshSession
from workers.core.models import Job


def last_heard(job: Job) -> datetime | None:
    """When a byte was last typed or printed in an SSH session of the job; None: never.

    A forwarded port counts while its person sends more than an editor's signs of life
    (`workers.access.ssh.gateway.connection.BUSY_BYTES`): an open connection is no work.
    """
    moment: datetime | None = SshSession.objects.filter(job=job).aggregate(last=Max("heard_at"))["last"]
    return moment
