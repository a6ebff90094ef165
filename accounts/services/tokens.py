"""API tokens: issued, found by their digest, revoked. Only the digest is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils.timezone import now

from accounts.models import ApiToken, User
from accounts.services import audit

PREFIX = "aip_"


def digest(secret: str) -> str:
    """sha256 in hex; the secret has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def issue(
    *, user: User, name: str, scope: str = ApiToken.Scope.WRITE, expires_in: timedelta | None = None
) -> tuple[ApiToken, str]:
    """Make a token; the second value is the secret, to be shown once.

    Args:
        expires_in: None: it never expires.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        scope=scope,
        prefix=secret[:12],
        digest=digest(secret),
        expires_at=now() + expires_in if expires_in else None,
    )
    audit.record(user, "token_issued", user, name=name, scope=scope, expires_at=token.expires_at)
    return token, secret


def find(secret: str) -> ApiToken | None:
    """The live token with this secret, of an active person; remembers its use (once a minute)."""
    if not secret.startswith(PREFIX):
        return None
    live = Q(expires_at=None) | Q(expires_at__gt=now())
    token = ApiToken.objects.select_related("user").filter(live, digest=digest(secret), user__is_active=True).first()
    if token and (token.last_used_at is None or now() - token.last_used_at > timedelta(minutes=1)):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now())
    return token


@transaction.atomic
def revoke(*, token: ApiToken, by: User) -> None:
    """End a token; the next request with it is refused."""
    audit.record(by, "token_revoked", token.user, name=token.name)
    token.delete()
