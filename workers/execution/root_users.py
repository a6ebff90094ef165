"""Root inside, for launching: whether this machine can, who root is outside, and what programs are told."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core.models import Job
from workers.execution import job_users
from workers.supervisor import sandbox, tiers
from workers.supervisor.ticket import Ticket

EACH = 1024
"""How many users one person has for this: those of the packages, 1 to 1022, and nobody."""
MAX_UID = 1 << 31
PATH = ":/usr/local/sbin:/usr/sbin:/sbin"


class NoRootHere(DomainError, code="no_root_here"):
    """A job that needs root inside was placed on a node that has none."""


@cache
def works(level: int, bwrap: str) -> bool:
    """Whether jobs can be root inside on this machine in its tier; found out by trying, once per process."""
    if not sandbox.BUBBLEWRAP <= level < sandbox.CONTAINER:
        return False
    is_root = os.geteuid() == 0
    if is_root and not job_users.can_chown(Path(settings.DATA_ROOT)):
        return False  # jobs are the platform's own user there, which is root outside
    uid = tiers.NOBODY if is_root else 0
    return not tiers.trial(
        Ticket(
            job=0, attempt=0, argv=["/usr/bin/env", "true"], env={}, cwd="/", tier=level, bwrap=bwrap, uid=uid,
            root=ids(uid, 0),
        )
    )  # fmt: skip


def ids(uid: int, owner_id: int) -> dict[str, Any]:
    """What `Ticket.root` holds.

    Args:
        uid: of the person's jobs; 0 where the platform is an ordinary user, whom all jobs are then.
    """
    if not uid:
        return {"uids": [[0, os.geteuid(), 1]], "gids": [[0, os.getegid(), 1]]}
    first = env.ROOT_UIDS + owner_id * EACH
    more = [[1, first + 1, EACH - 2], [tiers.NOBODY, first + EACH - 1, 1]] if first + EACH <= MAX_UID else []
    return {"uids": [[0, uid, 1], *more], "gids": [[0, uid, 1], *more]}


def of_job(job: Job, uid: int, level: int, bwrap: str) -> dict[str, Any]:
    """What the ticket of a job that is root inside says of its users.

    Raises:
        NoRootHere: this machine cannot do it, or its owner may not any more, and it never ran.
    """
    if not works(level, bwrap):
        raise NoRootHere(wording.message("job.no_root_here", node=settings.NODE))
    if not job.owner.root_allowed and job.started_at is None:
        raise NoRootHere(wording.message("job.root_revoked"))
    return ids(uid, job.owner_id)


def environment(job: Job, variables: dict[str, str]) -> dict[str, str]:
    """The variables of a job, with those that programs of root expect."""
    if not job.root_inside:
        return variables
    return (
        variables
        | {"USER": "root", "LOGNAME": "root"}
        | ({"PATH": variables["PATH"] + PATH} if "PATH" in variables else {})
    )
