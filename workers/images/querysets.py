"""Which images a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from accounts.access.querysets import OwnedQuerySet
from workers.core.states import FINAL

if TYPE_CHECKING:
    from accounts.models import User


class ImageQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("images.image", "pk")

    def editable_by(self, user: User) -> Self:
        """As for everything owned; built-in images of the platform cannot be edited."""
        return super().editable_by(user).filter(built_in="")

    def makeable_by(self, user: User) -> Self:
        """Engines that this person may have built, and images of theirs that may be saved again."""
        rows = type(self)(self.model)
        engines = Q(kind="engine", pk__in=rows.usable_by(user).values("pk"))
        saved = Q(kind="saved") | Q(source="saved")
        return self.filter(engines | saved & Q(pk__in=rows.editable_by(user).values("pk")))

    def for_list(self) -> Self:
        """With owner, engine and parent; `used`: how many jobs and images need it."""
        jobs = self._counted("uses", ~Q(job__state__in=FINAL) | Q(boxed=True) & ~Q(node=""))
        return self.select_related("owner", "engine__job", "parent", "login").annotate(
            used=jobs + self._counted("children", Q())
        )

    def for_choice(self) -> Self:
        """What a choice in a form shows; the other columns of the chosen row are read when they are needed."""
        shown = ("kind", "name", "tag", "description", "built_in", "source", "facts")
        names = ("owner__username", "owner__nickname", "engine__facts")
        return self.select_related("owner", "engine").only(*shown, *names)

    def _counted(self, relation: str, only: Q) -> Coalesce:
        """How many rows of a relation there are, by a query within the query."""
        field = self.model._meta.get_field(relation)
        name = field.field.name
        rows = field.related_model._default_manager.filter(only, **{name: OuterRef("pk")}).order_by().values(name)
        return Coalesce(Subquery(rows.annotate(number=Count("pk")).values("number")), 0)

    def startable(self) -> Self:
        """Images that a new job may name: those that are ready, or are built on demand."""
        return self.filter(Q(kind="engine") | Q(kind__in=("saved", "container"), state="ready"))


class RegistryLoginQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def usable_by(self, user: User) -> Self:
        """Own ones and those shared with one's groups; not even operators use another's."""
        mates = self.model._meta.apps.get_model("accounts", "User")._default_manager.filter(user_groups__users=user)
        return self.filter(Q(owner=user) | Q(visibility="group", owner__in=mates.values("pk")))

    def for_list(self) -> Self:
        """With owner; `used`: how many images need it."""
        return self.select_related("owner").annotate(used=Count("images"))


class NodeCopyQuerySet(OwnedQuerySet):
    owner_path = "image__owner"
    visibility_path = "image__visibility"
    shared = ("images.image", "image")
