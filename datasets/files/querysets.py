"""Which shared folders a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q, QuerySet

from accounts.access import sharing

if TYPE_CHECKING:
    from accounts.models import User


class SharedFolderQuerySet(QuerySet[Any]):
    """Shared folders of homes. Operators see no more of them than other users."""

    def visible_to(self, user: User) -> Self:
        """Own ones, and those that are shared with this person or a group of theirs."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(Q(owner=user) | sharing.shared_with(user, "files.sharedfolder", "pk"))

    def editable_by(self, user: User) -> Self:
        """Own ones."""
        return self.filter(owner=user) if user.is_authenticated else self.none()
