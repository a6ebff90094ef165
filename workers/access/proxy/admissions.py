"""Let a person's browser in to a port: a ticket that works once, a cookie, and the question asked again and again.

The platform's own cookie never goes to a job. A ticket is made on the platform, for one person and one port; the origin
of the ports turns it into a cookie of its own. Whoever signs out, is disabled, or loses the port is out within seconds.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import ApiToken, User
from accounts.services import audit, tokens
from accounts.sign_in.asgi import person_of_session
from aiplatform.lib.errors import DomainError, NotAllowed
from workers.access.proxy import addresses, published_ports
from workers.access.proxy.models import Admission, PublishedPort
from workers.access.proxy.refusals import Refused
from workers.core.models import Job
from workers.core.states import JobState

TICKET = timedelta(seconds=30)
SESSION = timedelta(hours=12)
MAX_OPEN = 50  # admissions of one person to one port; the oldest end


class NotRunning(DomainError, code="job_not_running"): ...


class NeedsName(DomainError, code="ports_need_names"): ...


@dataclass(frozen=True)
class Opened:
    """Where a browser goes with its ticket; good for half a minute."""

    url: str
    expires_in_s: int


@dataclass(frozen=True)
class Grant:
    """What an admission or a token opens, until it is checked again."""

    port_id: int
    job_id: int
    attempt: int
    person: int
    port: int | None
    socket: str
    strips: bool
    secret: str
    cookie_names: tuple[str, ...]


def check(row: PublishedPort, user: User) -> None:
    """Refuse to open a port that is not this person's to open, or not now.

    Raises:
        NotAllowed: the port is not theirs, nor shared with them.
        NotRunning, NeedsName, PortsOff: see the sentences.
    """
    if not addresses.are_ports_enabled():
        raise published_ports.PortsOff(_("Ports are disabled on this platform. Ask an administrator."))
    if not _may_open(row, user):
        raise NotAllowed(_("This port belongs to another user. Ask the owner to share it with you."))
    if row.job.state != JobState.RUNNING:
        raise NotRunning(_("The job is not running. Its ports are available while it runs."))
    if row.job.owner_id != user.pk and not addresses.has_host_per_port():
        raise NeedsName(
            _(
                "Ports of other users require a host name for each port, so that their pages cannot use your "
                "session. Ask an administrator to set AIP_PORTS_HOST."
            )
        )


@transaction.atomic
def issue(
    row: PublishedPort, *, user: User, host: str, secure: bool, session_key: str = "", token: ApiToken | None = None
) -> Opened:
    """Make a ticket for a port.

    Args:
        host: by which the person reached the platform, and `secure`: whether by https.
        session_key: of the browser's sign-in; or `token`: the caller's.

    Raises:
        NotAllowed, NotRunning, NeedsName, PortsOff: see `check`.
    """
    check(row, user)
    ticket = secrets.token_urlsafe(32)
    old = Admission.objects.filter(port=row, user=user).order_by("-pk").values("pk")[MAX_OPEN - 1 :]
    Admission.objects.filter(pk__in=[item["pk"] for item in old]).delete()
    Admission.objects.create(
        port=row,
        user=user,
        session_key=session_key,
        token=token,
        digest=tokens.digest(ticket),
        expires_at=now() + TICKET,
    )
    audit.record(user, "port_opened", row.job, name=row.name)
    base = addresses.origin(row.job_id, row.name, host=host, secure=secure)
    mount = addresses.base_path(row.job_id, row.name)
    return Opened(f"{base}{mount}{addresses.ENTER}?ticket={ticket}", int(TICKET.total_seconds()))


@transaction.atomic
def enter(job: int, name: str, ticket: str, *, sessions: Collection[str] = ()) -> tuple[str, str]:
    """Turn a ticket into the value of a cookie, once; and where to go on, below the port.

    Args:
        sessions: keys of sessions that the browser holds. Where all ports are one origin, one is the ticket's person's:
            else a ticket sent to somebody would run its maker's page among the ports of who opens it.

    Raises:
        Refused: the ticket was used, is too old, is another port's, or somebody else's.
    """
    rows = Admission.objects.filter(digest=tokens.digest(ticket), entered_at=None, expires_at__gt=now())
    row = rows.filter(port__job=job, port__name=name).select_related("port", "user").first()
    if (
        row is not None
        and not addresses.has_host_per_port()
        and not any(_is_session_of(row.user, key) for key in sessions)
    ):
        raise Refused("not_this_browser")
    cookie = secrets.token_urlsafe(32)
    moment = now()
    if row is None or not Admission.objects.filter(pk=row.pk, entered_at=None).update(
        digest=tokens.digest(cookie), entered_at=moment, expires_at=moment + SESSION
    ):
        raise Refused("ticket_used")
    return cookie, row.port.path


def by_cookie(job: int, name: str, cookie: str) -> Grant:
    """What a cookie opens now.

    Raises:
        Refused: it opens nothing, or does no more.
    """
    rows = Admission.objects.filter(digest=tokens.digest(cookie), port__job=job, port__name=name)
    rows = rows.filter(entered_at__isnull=False, expires_at__gt=now())
    row = rows.select_related("port__job", "user", "token").first()
    if row is None or not _signed_in(row):
        raise Refused("not_admitted")
    return _grant(row.port, row.user)


def by_token(job: int, name: str, secret: str, *, writes: bool) -> Grant:
    """What an API token opens now.

    Raises:
        Refused: see `by_cookie`; an unknown token is "not_signed_in".
    """
    token = tokens.find(secret)
    if token is None or token.user.must_change_password:
        raise Refused("not_signed_in")
    if writes and token.scope == ApiToken.Scope.READ:
        raise Refused("read_only")
    row = PublishedPort.objects.filter(job=job, name=name).select_related("job").first()
    if row is None or not _may_open(row, token.user):
        raise Refused("not_found")
    return _grant(row, token.user)


def _is_session_of(user: User, key: str) -> bool:
    """Whether a session is a person's own: that of who acts for them is not."""
    return person_of_session(key) == user and SessionStore(session_key=key).get(SESSION_KEY) == str(user.pk)


def _signed_in(row: Admission) -> bool:
    """Whether the sign-in that the admission was made in still is one."""
    if row.session_key:
        return person_of_session(row.session_key) == row.user
    alive = row.token is not None and (row.token.expires_at is None or row.token.expires_at > now())
    return alive and row.user.is_active and not row.user.must_change_password


def _may_open(row: PublishedPort, user: User) -> bool:
    return user.can(Action.JOBS_VIEW) and PublishedPort.objects.openable_by(user).filter(pk=row.pk).exists()


def _grant(row: PublishedPort, user: User) -> Grant:
    if not _may_open(row, user):
        raise Refused("not_shared")
    job: Job = row.job
    if job.state != JobState.RUNNING:
        raise Refused("job_not_running")
    return Grant(
        port_id=row.pk,
        job_id=job.pk,
        attempt=job.attempt_number,
        person=user.pk,
        port=row.port,
        socket=row.socket,
        strips=not row.keeps_path and not addresses.has_host_per_port(),
        secret=published_ports.secret_of(row),
        cookie_names=tuple(row.cookie_names),
    )


def sweep() -> None:
    """Delete admissions that are over."""
    Admission.objects.filter(expires_at__lt=now()).delete()
