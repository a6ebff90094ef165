"""What a person may see of annotation: their own projects, those they are a member of, public sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db.models import Count, Exists, OuterRef, Q

from accounts import sharing
from accounts.querysets import OwnedQuerySet

if TYPE_CHECKING:
    from accounts.models import User


PROJECT = "annotation.annotationproject"


class ProjectQuerySet(OwnedQuerySet):
    """A project is seen by its owner, its members, whom it is shared with, and everyone once a set of it is public."""

    shared = (PROJECT, "pk")

    def visible_to(self, user: User) -> Self:
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        members = self.model.members.through.objects.filter(project=OuterRef("pk"), user=user)
        public = self.model.sets.rel.related_model.objects.filter(project=OuterRef("pk"), visibility="public")
        return self.filter(
            Q(owner=user) | Q(Exists(members)) | Q(Exists(public)) | sharing.shared_with(user, PROJECT, "pk")
        )

    def for_list(self) -> Self:
        return self.select_related("owner").annotate(set_count=Count("sets", distinct=True))


class InProjectQuerySet(OwnedQuerySet):
    """Rows inside an annotation set. `set_path` leads there ("" when the row is the set itself)."""

    set_path = ""

    def visible_to(self, user: User) -> Self:
        return self._in_projects(user, sharing.VIEW)

    def annotatable_by(self, user: User) -> Self:
        """Rows this person may draw on: those of projects shared for viewing only are left out."""
        return self._in_projects(user, sharing.ANNOTATE)

    def _in_projects(self, user: User, level: str) -> Self:
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        prefix = f"{self.set_path}__" if self.set_path else ""
        projects = user.annotation_projects.values("pk")
        return self.filter(
            Q(**{f"{prefix}project__owner": user})
            | Q(**{f"{prefix}project__in": projects})
            | Q(**{f"{prefix}visibility": "public"})
            | sharing.shared_with(user, PROJECT, f"{prefix}project", level)
        )

    def editable_by(self, user: User) -> Self:
        if not user.is_authenticated:
            return self.none()
        prefix = f"{self.set_path}__" if self.set_path else ""
        if user.sees_everything:
            return self
        managed = sharing.shared_with(user, PROJECT, f"{prefix}project", sharing.MANAGE)
        return self.filter(Q(**{f"{prefix}project__owner": user}) | managed)


class SetQuerySet(InProjectQuerySet):
    def for_list(self) -> Self:
        return self.select_related("project", "source__dataset")


class InSetQuerySet(InProjectQuerySet):
    set_path = "set"


class InTaskQuerySet(InProjectQuerySet):
    set_path = "task__set"
