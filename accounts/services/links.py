"""One-time links that create the first administrator or set a new password. Only a digest of the secret is stored."""

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

FIRST_ADMIN_LIFETIME = timedelta(hours=24)
PASSWORD_LIFETIME = timedelta(hours=1)

Purpose = OneTimeLink.Purpose


class LinkUsedUp(DomainError, code="link_used_up", status=410): ...


def _issue(purpose: str, lifetime: timedelta, user: User | None = None) -> str:
    """Store a new link and return its secret."""
    secret = secrets.token_urlsafe(32)
    OneTimeLink.objects.create(purpose=purpose, user=user, digest=digest(secret), expires_at=now() + lifetime)
    return secret


def administrator_exists() -> bool:
    """Return whether an active administrator or superuser exists."""
    return User.objects.administrators().exists() or User.objects.filter(is_superuser=True, is_active=True).exists()


def find_active_user(user_id: int) -> User | None:
    """Return the active account with this id; None if it does not exist or is disabled."""
    return User.objects.filter(pk=user_id, is_active=True).first()


@transaction.atomic
def issue_first_admin_link() -> str | None:
    """Return the path of the page that creates the first administrator ("/welcome/…/"); None if one exists already.

    A new link invalidates older ones. It works once, within 24 hours.
    """
    if administrator_exists():
        return None
    OneTimeLink.objects.filter(purpose=Purpose.FIRST_ADMIN, used_at=None).delete()
    return f"/welcome/{_issue(Purpose.FIRST_ADMIN, FIRST_ADMIN_LIFETIME)}/"


@transaction.atomic
def issue_password_link(*, user: User, by: User | None) -> str:
    """Return the path of the page where `user` sets a new password ("/set-password/…/").

    A new link invalidates older ones. It works once, within an hour.

    Args:
        by: who requested the link; None is the platform itself.

    Raises:
        BeyondYou: `user` has more rights than `by`, who could sign in as `user` with the link.
        FirstAdministrator: only the first administrator can change the password of that account.
    """
    ceiling.touch(by, user)
    if by is not None and by.pk != user.pk:
        ceiling.stays(user)
    audit.record(by, "password_link_made", user)
    OneTimeLink.objects.filter(purpose=Purpose.PASSWORD, user=user, used_at=None).delete()
    return f"/set-password/{_issue(Purpose.PASSWORD, PASSWORD_LIFETIME, user)}/"


def find(secret: str, purpose: str) -> OneTimeLink:
    """Return the valid link with this secret.

    Raises:
        LinkUsedUp: the link was used, has expired or never existed; the message does not reveal which.
    """
    valid_links = OneTimeLink.objects.filter(purpose=purpose, used_at=None, expires_at__gt=now())
    link = valid_links.select_related("user").filter(digest=digest(secret)).first()
    if link is None or (link.user is not None and not link.user.is_active):
        raise LinkUsedUp(_("This link was already used or has expired. Request a new one."))
    return link


def _use(link: OneTimeLink) -> None:
    """Mark the link as used; of two concurrent callers, one succeeds and the other gets LinkUsedUp."""
    if not OneTimeLink.objects.filter(pk=link.pk, used_at=None).update(used_at=now()):
        raise LinkUsedUp(_("This link was already used or has expired. Request a new one."))


@transaction.atomic
def redeem_first_admin(*, secret: str, username: str, password: str) -> User:
    """Create the first administrator as a member of the oldest cluster, so that they can start jobs at once.

    Raises:
        LinkUsedUp: see `find`; also if another administrator was created in the meantime.
        UsernameTaken, WeakPassword: the link stays usable.
    """
    link = find(secret, Purpose.FIRST_ADMIN)
    if administrator_exists():
        raise LinkUsedUp(_("This platform already has an administrator."))
    _use(link)
    roles = [Role.objects.get(name=SYSTEM_ADMIN)]
    admin = people.create(
        username=username, password=password, roles=roles, must_change_password=False, first=True, by=None
    )
    oldest_cluster = [cluster_id for cluster_id, _name in sorted(clusters.choices())[:1]]  # empty without clusters
    cluster_membership.replace(admin, oldest_cluster, by=admin)
    return admin


@transaction.atomic
def redeem_password(*, secret: str, password: str) -> User:
    """Set the password of the user for whom the link was issued.

    Raises:
        LinkUsedUp: see `find`.
        WeakPassword: the link stays usable.
    """
    link = find(secret, Purpose.PASSWORD)
    assert link.user is not None
    _use(link)
    passwords.change(user=link.user, password=password, by=link.user)
    return link.user
