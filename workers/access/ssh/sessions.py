"""SSH sessions as rows: begun by the gateway, ended by people or what was withdrawn, swept behind a killed gateway."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import SshKey, User
from accounts.services import audit
from aiplatform.lib.errors import DomainError
from workers.access.ssh.access import Admission, may_enter
from workers.access.ssh.models import SshSession
from workers.access.ssh.querysets import SILENCE_TIMEOUT
from workers.core.models import Job

RETENTION = timedelta(days=90)
MAX_SESSIONS_PER_JOB, MAX_SESSIONS_PER_USER = 64, 128


class SessionOver(DomainError, code="session_over"):
    """It had ended already."""


def start(admission: Admission, *, address: str, client: str, gateway: str) -> SshSession | None:
    """Record a sign-in; None where the job or the user has the maximum of open sessions."""
    user = User.objects.get(pk=admission.user)
    with audit.with_origin(audit.Origin(address=address)), transaction.atomic():
        if admission.job is None:
            audit.record(user, "ssh_jumped", admission.username, fingerprint=admission.fingerprint)
            return None
        job = Job.objects.get(pk=admission.job)
        rows = SshSession.objects.open()
        full = (
            rows.filter(job=job).count() >= MAX_SESSIONS_PER_JOB
            or rows.filter(user=user).count() >= MAX_SESSIONS_PER_USER
        )
        verb = "ssh_refused" if full else "ssh_entered"
        reason = {"code": "too_many_sessions"} if full else {}
        audit.record(user, verb, job, way=admission.method, fingerprint=admission.fingerprint, device=client, **reason)
        if full:
            return None
        return SshSession.objects.create(
            job=job, user=user, way=admission.method, key_name=admission.key_name, fingerprint=admission.fingerprint,
            address=address[:45], client=client[:100], gateway=gateway,
        )  # fmt: skip


def record_refusal(name: str, *, address: str, fingerprints: list[str]) -> None:
    """Record a refused sign-in. Public keys are public: their owner is a hint, not proof of who it was."""
    with audit.with_origin(audit.Origin(address=address)):
        keys = SshKey.objects.filter(fingerprint__in=fingerprints)
        holders = sorted(set(keys.values_list("user__username", flat=True)))
        facts = {"fingerprint": fingerprints[:10], "holders": holders}
        audit.record(None, "ssh_refused", name[:50], **{key: value for key, value in facts.items() if value})


def request_end(session: SshSession, *, by: User) -> None:
    """Ask the gateway to cut a session, which it does within seconds.

    Raises:
        SessionOver: it has ended.
    """
    if session.ended_at is not None:
        raise SessionOver(_("This session has already ended."))
    with transaction.atomic():
        SshSession.objects.filter(pk=session.pk, end_requested_at=None).update(end_requested_at=now())
        audit.record(by, "ssh_session_ended", session.job, person=session.user.username)


def list_revoked(numbers: list[int]) -> dict[int, str]:
    """Which of these open sessions must end, and why: a `SshSession.End` by number."""
    reasons: dict[int, str] = dict.fromkeys(numbers, SshSession.End.JOB_ENDED)  # its row went with the job
    rows = SshSession.objects.filter(pk__in=numbers).select_related("user", "job")
    keys = set(SshKey.objects.filter(fingerprint__in=[row.fingerprint for row in rows if row.fingerprint])
               .values_list("fingerprint", "user_id"))  # fmt: skip
    for row in rows:
        if row.end_requested_at is not None:
            reasons[row.pk] = SshSession.End.REQUESTED
        elif not may_enter(row.user, row.job) or (row.fingerprint and (row.fingerprint, row.user_id) not in keys):
            reasons[row.pk] = SshSession.End.WITHDRAWN
        elif not row.job.is_final:
            del reasons[row.pk]
    return reasons


def touch(gateway: str, activity: Mapping[int, datetime]) -> None:
    """Record that a gateway is alive, and the last activity in its sessions."""
    SshSession.objects.filter(gateway=gateway, ended_at=None).update(seen_at=now())
    for number, moment in activity.items():
        SshSession.objects.filter(pk=number).update(heard_at=moment)


def end(number: int, why: str, heard_at: datetime | None) -> None:
    """Close the row of a session."""
    changed = {"heard_at": heard_at} if heard_at else {}
    SshSession.objects.filter(pk=number, ended_at=None).update(ended_at=now(), end=why, **changed)


def sweep(gateway: str, *, alone: bool = False) -> int:
    """Close what lost gateways left open: all others' where this one is `alone` on the port, else the silent ones'."""
    rows = SshSession.objects.filter(ended_at=None).exclude(gateway=gateway)
    if not alone:
        rows = rows.filter(seen_at__lt=now() - SILENCE_TIMEOUT)
    closed: int = rows.update(ended_at=now(), end=SshSession.End.GATEWAY_LOST)
    SshSession.objects.filter(ended_at__lt=now() - RETENTION).delete()
    return closed
