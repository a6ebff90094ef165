"""Keys of services: made, found by their digest, revoked."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from accounts.services.tokens import digest
from aiplatform.lib import stamps
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from inference.serving.keys.models import ServiceKey
from inference.serving.models import Service

PREFIX = "aik_"
MAX_KEYS = 200  # keys of one service that open it
MAX_PER_MINUTE = 1_000_000
MAX_NAME = 100
MAX_DURATION = timedelta(days=3650)


class TooManyKeys(DomainError, code="too_many_keys"): ...


@transaction.atomic
def issue(
    *, service: Service, by: User, name: str, per_minute: int | None = None, expires_in: timedelta | None = None
) -> tuple[ServiceKey, str]:
    """Create a key; the second value is the secret, to be shown once.

    Args:
        name: distinguishes active keys; those that were revoked have left theirs free.
        per_minute: most requests in any minute; None: what the service allows each caller.
        expires_in: None: it never expires.

    Raises:
        Invalid, NameTaken, TooManyKeys: see the sentences.
    """
    Service.objects.select_for_update(of=("self",)).get(pk=service.pk)  # two at once do not take one name
    active_keys = service.keys.filter(revoked_at=None)
    refusals = Refusals()
    with refusals:
        if not re.fullmatch(TITLE.regex, name) or len(name) > MAX_NAME:
            raise Invalid(TITLE.message, field="name")
        if active_keys.filter(name=name).exists():
            raise NameTaken(_("This endpoint already has an API key named “%(name)s”.") % {"name": name}, field="name")
    with refusals:
        if per_minute is not None and not 1 <= per_minute <= MAX_PER_MINUTE:
            raise Invalid(_("The limit must be 1 to 1,000,000 requests per minute and client."), field="per_minute")
    with refusals:
        if expires_in is not None and not timedelta(0) < expires_in <= MAX_DURATION:
            raise Invalid(_("An API key can be valid for 1 to 3650 days."), field="days")
    with refusals:
        if active_keys.count() >= MAX_KEYS:
            raise TooManyKeys(
                _("An endpoint can have at most %(most)d API keys. Revoke an unused one.") % {"most": MAX_KEYS}
            )
    refusals.end()
    secret = PREFIX + secrets.token_urlsafe(32)
    key = ServiceKey.objects.create(
        service=service,
        name=name,
        prefix=secret[:12],
        digest=digest(secret),
        per_minute=per_minute,
        expires_at=now() + expires_in if expires_in else None,
        created_by=by,
    )
    audit.record(by, "service_key_issued", service, name=name, expires_at=key.expires_at)
    return key, secret


def find(slug: str, secret: str) -> ServiceKey | None:
    """The key of a service that opens it with this secret; remembers its use (once a minute)."""
    rows = ServiceKey.objects.filter(digest=digest(secret), service__slug=slug)
    key = rows.select_related("service__job", "service__owner").first()
    if key is None or not key.opens:
        return None
    moment = now()
    if key.last_used_at is None or moment - key.last_used_at > timedelta(minutes=1):
        stamps.stamp(ServiceKey.objects.filter(pk=key.pk), last_used_at=moment)
    return key


@transaction.atomic
def revoke(*, key: ServiceKey, by: User) -> None:
    """End a key; requests with it are refused within a second. What it was used for stays counted."""
    if ServiceKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now()):
        audit.record(by, "service_key_revoked", key.service, name=key.name)
