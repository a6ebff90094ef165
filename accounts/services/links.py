"""One-time links: for the first administrator, and for a new password. Only a digest is stored."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.access import clusters
from accounts.access.permissions import SYSTEM_ADMIN
from accounts.models import OneTimeLink, Role, User
from accounts.services import audit, ceiling, cluster_membership, passwords, people
from accounts.services.tokens import digest
from aiplatform.lib.errors import DomainError

FIRST_ADMIN_LIVES = timedelta(hours=24)
PASSWORD_LIVES = timedelta(hours=1)

Purpose = OneTimeLink.Purpose


class LinkUsedUp(DomainError, code="link_used_up", status=410): ...


def _issue(purpose: str, lives: timedelta, user: User | None = None) -> str:
    secret = secrets.token_urlsafe(32)
    OneTimeLink.objects.create(purpose=purpose, user=user, digest=digest(secret), expires_at=now() + lives)
    return secret


def administrator_exists() -> bool:
    """Whether anybody can already administer this platform."""
    return User.objects.administrators().exists() or User.objects.filter(is_superuser=True, is_active=True).exists()


def active(number: int) -> User | None:
    """The active account with this id."""
    return User.objects.filter(pk=number, is_active=True).first()


@transaction.atomic
def first_admin() -> str | None:
    """Path of the page that makes the first administrator, e.g. "/welcome/…/"; None when there is one already.

    A new link ends older ones; it works once, within 24 hours.
    """
    if administrator_exists():
        return None
    OneTimeLink.objects.filter(purpose=Purpose.FIRST_ADMIN, used_at=None).delete()
    return f"/welcome/{_issue(Purpose.FIRST_ADMIN, FIRST_ADMIN_LIVES)}/"


@transaction.atomic
def password(*, user: User, by: User | None) -> str:
    """Path of the page where `user` sets a new password; it works once, within an hour, and ends older ones.

    Raises:
        BeyondYou: who gets such a link can become `user`, and `user` may do more than `by`.
        FirstAdministrator: only its owner changes the password of that account.
    """
    ceiling.touch(by, user)
    if by is not None and by.pk != user.pk:
        ceiling.stays(user)
    audit.record(by, "password_link_made", user)
    OneTimeLink.objects.filter(purpose=Purpose.PASSWORD, user=user, used_at=None).delete()
    return f"/set-password/{_issue(Purpose.PASSWORD, PASSWORD_LIVES, user)}/"


def find(secret: str, purpose: str) -> OneTimeLink:
    """The live link with this secret.

    Raises:
        LinkUsedUp: it was used, is too old, or never existed; the sentence is the same for all three.
    """
    live = OneTimeLink.objects.filter(purpose=purpose, used_at=None, expires_at__gt=now())
    link = live.select_related("user").filter(digest=digest(secret)).first()
    if link is None or (link.user is not None and not link.user.is_active):
        raise LinkUsedUp(_("This link was used already or is too old. Ask for a new one."))
    return link


def _use(link: OneTimeLink) -> None:
    """Mark the link as used; of two callers at once, one gets it."""
    if not OneTimeLink.objects.filter(pk=link.pk, used_at=None).update(used_at=now()):
        raise LinkUsedUp(_("This link was used already or is too old. Ask for a new one."))


@transaction.atomic
def redeem_first_admin(*, secret: str, username: str, password: str) -> User:
    """Create the first administrator as member of the oldest cluster, so that they can use the platform at once.

    Raises:
        LinkUsedUp: see `find`; also when an administrator exists by now.
        UsernameTaken, WeakPassword: the link stays usable.
    """
    link = find(secret, Purpose.FIRST_ADMIN)
    if administrator_exists():
        raise LinkUsedUp(_("This platform has an administrator already."))
    _use(link)
    roles = [Role.objects.get(name=SYSTEM_ADMIN)]
    person = people.create(
        username=username, password=password, roles=roles, must_change_password=False, first=True, by=None
    )
    cluster_membership.replace(person, [number for number, _name in sorted(clusters.choices())[:1]], by=person)
    return person


@transaction.atomic
def redeem_password(*, secret: str, password: str) -> User:
    """Set the password of the person the link was made for.

    Raises:
        LinkUsedUp: see `find`.
        WeakPassword: the link stays usable.
    """
    link = find(secret, Purpose.PASSWORD)
    assert link.user is not None
    _use(link)
    passwords.change(user=link.user, password=password, by=link.user)
    return link.user
