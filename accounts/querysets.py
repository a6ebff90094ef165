"""The base of every app's querysets: what a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q, QuerySet

if TYPE_CHECKING:
    from accounts.models import User


class OwnedQuerySet(QuerySet[Any]):
    """Rows with an `owner`; a `visibility` of "public" opens them to every signed-in person.

    Subclasses name the columns when they differ (`owner_path = "job__owner"`).
    """

    owner_path = "owner"
    visibility_path: str | None = None

    def visible_to(self, user: User) -> Self:
        """Rows this person may see: their own, public ones, and for operators all of them."""
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        mine = Q(**{self.owner_path: user})
        if self.visibility_path:
            mine |= Q(**{self.visibility_path: "public"})
        return self.filter(mine)

    def editable_by(self, user: User) -> Self:
        """Rows this person may change: their own, and for operators all of them."""
        if not user.is_authenticated:
            return self.none()
        return self if user.sees_everything else self.filter(**{self.owner_path: user})
