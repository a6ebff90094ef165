"""Which published ports a person may see and open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db.models import Q

from accounts.access import sharing
from accounts.access.querysets import OwnedQuerySet

if TYPE_CHECKING:
    from accounts.models import User


class PortQuerySet(OwnedQuerySet):
    owner_path = "job__owner"
    shared = ("ports.publishedport", "pk")

    def openable_by(self, user: User) -> Self:
        """Ports this person may open: of own jobs and shared ones. Operators see all, but enter none unasked."""
        return self.filter(Q(job__owner=user) | self._shared_with(user, sharing.VIEW))
