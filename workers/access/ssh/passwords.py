"""One-time passwords: short-lived, for one job and one person, kept as digests."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib import rates
from aiplatform.lib.errors import DomainError, NotAllowed
from workers.access.ssh.models import SshPassword
from workers.core.models import Job

LIFETIME = timedelta(minutes=5)
MAX_PER_HOUR = 60
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that looks like another
GROUPS, LENGTH = 4, 4  # 16 of 31 letters: 79 bits


class NoSsh(DomainError, code="no_ssh"):
    """This installation offers no SSH."""


class JobOver(DomainError, code="job_over"):
    """A job that has ended has no inside any more."""


def digest(secret: str) -> str:
    """sha256 in hex; what is random needs no slow hash."""
    return hashlib.sha256(secret.strip().encode("utf-8", "surrogatepass")).hexdigest()


def make(job: Job, *, by: User) -> tuple[SshPassword, str]:
    """Make a password for the owner of a job; the second value is shown once.

    Raises:
        NoSsh: it is switched off here.
        NotAllowed: only the owner enters a job.
        JobOver: the job has ended.
        TooOften: more than `MAX_PER_HOUR`.
    """
    if not env.SSH_PORT:
        raise NoSsh(_("SSH is disabled. Ask an administrator to set AIP_SSH_PORT."))
    if job.owner_id != by.pk:
        raise NotAllowed(_("Only the owner of a job can connect to it by SSH."))
    if job.is_final:
        raise JobOver(_("The job has ended. Run it again before you connect."))
    rates.limit(f"ssh-password:{by.pk}", max_count=MAX_PER_HOUR, within_s=3600)
    secret = "-".join("".join(secrets.choice(ALPHABET) for _i in range(LENGTH)) for _group in range(GROUPS))
    with transaction.atomic():
        row = SshPassword.objects.create(job=job, user=by, digest=digest(secret), expires_at=now() + LIFETIME)
        audit.record(by, "ssh_password_made", job)
    return row, secret


def use(job: int, secret: str) -> SshPassword | None:
    """Take a live password of a job, once: of two who come with it at the same time one is let in."""
    row = SshPassword.objects.live().select_related("user", "job").filter(job=job, digest=digest(secret)).first()
    if row is None or not SshPassword.objects.live().filter(pk=row.pk).update(used_at=now()):
        return None
    return row


def forget_old() -> None:
    """Remove the passwords that open nothing any more."""
    SshPassword.objects.filter(expires_at__lt=now() - timedelta(days=1)).delete()
