"""Which images a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from accounts.querysets import OwnedQuerySet
from aiplatform.lib import search
from workers.states import FINAL

if TYPE_CHECKING:
    from accounts.models import User


class ImageQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("images.image", "pk")

    def editable_by(self, user: User) -> Self:
        """As for everything owned; what the platform brings along nobody changes."""
        return super().editable_by(user).filter(built_in="")

    def for_list(self) -> Self:
        """With owner, engine and parent; `used`: how many jobs and images need it."""
        jobs = self._counted("uses", ~Q(job__state__in=FINAL) | Q(boxed=True) & ~Q(node=""))
        return self.select_related("owner", "engine__job", "parent").annotate(
            used=jobs + self._counted("children", Q())
        )

    def _counted(self, relation: str, only: Q) -> Coalesce:
        """How many rows of a relation there are, by a query within the query."""
        field = self.model._meta.get_field(relation)
        name = field.field.name
        rows = field.related_model._default_manager.filter(only, **{name: OuterRef("pk")}).order_by().values(name)
        return Coalesce(Subquery(rows.annotate(number=Count("pk")).values("number")), 0)

    def named_like(self, words: str) -> Self:
        """Name, tag or description contains each of the words."""
        return search.having(self, words, "name", "tag", "description")

    def of_kind(self, kind: str) -> Self:
        """Images of one kind; all for an empty word."""
        return self.filter(kind=kind) if kind else self

    def startable(self) -> Self:
        """What a new job may name: what is ready, or is built when somebody asks for it."""
        return self.filter(Q(kind="engine") | Q(kind="saved", state="ready"))
