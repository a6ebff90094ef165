"""Who may enter which job by SSH. Asked at every sign-in, and again while a session lasts.

The owner of a job enters it, and nobody else: operators see, stop and end it by the platform's own acts, which say who
did it; a shell in somebody's job would read that person's data in that person's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from accounts.access.permissions import Action
from accounts.models import SshKey, User
from accounts.sign_in import lockout
from workers.access.ssh import passwords
from workers.access.ssh.models import SshSession
from workers.core.models import Job

JUMP = "jump"
"""Whoever signs in by this name, or by the own one, jumps from here to a job."""
_JOB = re.compile(r"(?:job-)?([1-9][0-9]{0,17})(?:\.([0-9]{1,3}))?\Z")


@dataclass(frozen=True)
class Admission:
    """An admitted user, the method of authentication, and the job; without a job only to jump."""

    user: int
    username: str
    method: str
    language: str
    job: int | None = None
    rank: int = 0
    key_name: str = ""
    fingerprint: str = ""


def job_number(name: str) -> int | None:
    """The job of a login name: `12` and `job-12`, and `job-12.1` for its second rank."""
    match = _JOB.match(name)
    return int(match[1]) if match else None


def rank_number(name: str) -> int:
    """The rank of a login name: 1 for `job-12.1`, 0 where none is named."""
    match = _JOB.match(name)
    return int(match[2] or 0) if match else 0


def may_enter(user: User, job: Job) -> bool:
    """Whether this person may be inside the job, now."""
    return job.owner_id == user.pk and _is_fit(user) and user.can(Action.JOBS_CONTROL)


def by_key(name: str, fingerprint: str) -> Admission | None:
    """Who has this key, if the name is a job that this person may enter, or leads to a jump."""
    key = SshKey.objects.select_related("user").filter(fingerprint=fingerprint).first()
    if key is None:
        return None
    number, user = job_number(name), key.user
    if number is None:
        jumps = name in {JUMP, user.username} and _is_fit(user) and user.can(Action.JOBS_CONTROL)
        return _admission(user, SshSession.Way.KEY, None, key) if jumps else None
    job = Job.objects.visible_to(user).filter(pk=number).first()
    if job is None or not may_enter(user, job):
        return None
    return _admission(user, SshSession.Way.KEY, number, key, rank=rank_number(name))


def by_password(name: str, secret: str, *, address: str) -> Admission | None:
    """Use a one-time password up; None where it is wrong, used, too old, or after too many wrong guesses."""
    number = job_number(name)
    name_counted = f"job-{number}" if number else name  # a job has many names, and one count
    if lockout.is_paused_at(address, name_counted):
        return None
    row = passwords.use(number, secret) if number else None
    if row is None or not may_enter(row.user, row.job):
        lockout.count_failure_at(address, name_counted)
        return None
    return _admission(row.user, SshSession.Way.PASSWORD, number, rank=rank_number(name))


def _is_fit(user: User) -> bool:
    return user.is_active and not user.must_change_password


def _admission(user: User, method: str, job: int | None, key: SshKey | None = None, *, rank: int = 0) -> Admission:
    return Admission(
        user=user.pk,
        username=user.username,
        method=str(method),
        language=user.speaks,
        job=job,
        rank=rank,
        key_name=key.name if key else "",
        fingerprint=key.fingerprint if key else "",
    )
