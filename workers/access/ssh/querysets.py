"""What a person may see of SSH sessions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from django.db.models import QuerySet
from django.utils.timezone import now

from accounts.access.querysets import OwnedQuerySet

SILENCE_TIMEOUT = timedelta(seconds=90)
"""A gateway that wrote nothing for so long is gone, and its connections with it."""


class SshPasswordQuerySet(QuerySet[Any]):
    def live(self) -> Self:
        """Passwords that still open their job."""
        return self.filter(used_at=None, expires_at__gt=now())


class SshSessionQuerySet(OwnedQuerySet):
    owner_path = "job__owner"

    def open(self) -> Self:
        """Sessions whose gateway still holds them."""
        return self.filter(ended_at=None, seen_at__gt=now() - SILENCE_TIMEOUT)
