"""API tokens: issued, found by their digest, revoked. Only the digest is stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now

from accounts.models import ApiToken, User
from accounts.services import audit
from aiplatform.lib import stamps

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
    token = next(iter(ApiToken.objects.select_related("user").filter(digest=digest(secret))), None)
    moment = now()
    if token is None or not token.user.is_active or (token.expires_at is not None and token.expires_at <= moment):
        return None
    if token.last_used_at is None or moment - token.last_used_at > timedelta(minutes=1):
        stamps.stamp(ApiToken.objects.filter(pk=token.pk), last_used_at=moment)
    return token


@transaction.atomic
def revoke(*, token: ApiToken, by: User) -> None:
    """End a token; the next request with it is refused."""
    audit.record(by, "token_revoked", token.user, name=token.name)
    token.delete()
