"""What a person may see of annotation: their own projects, those they are a member of, public sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db.models import Count, Exists, OuterRef, Q

from accounts.querysets import OwnedQuerySet

if TYPE_CHECKING:
    from accounts.models import User


class ProjectQuerySet(OwnedQuerySet):
    """A project is seen by its owner, its members, and by everyone once one of its sets is public."""

    def visible_to(self, user: User) -> Self:
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        members = self.model.members.through.objects.filter(project=OuterRef("pk"), user=user)
        public = self.model.sets.rel.related_model.objects.filter(project=OuterRef("pk"), visibility="public")
        return self.filter(Q(owner=user) | Q(Exists(members)) | Q(Exists(public)))

    def for_list(self) -> Self:
        return self.select_related("owner").annotate(set_count=Count("sets", distinct=True))


class InProjectQuerySet(OwnedQuerySet):
    """Rows inside an annotation set. `set_path` leads there ("" when the row is the set itself)."""

    set_path = ""

    def visible_to(self, user: User) -> Self:
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
        )

    def editable_by(self, user: User) -> Self:
        if not user.is_authenticated:
            return self.none()
        prefix = f"{self.set_path}__" if self.set_path else ""
        return self if user.sees_everything else self.filter(**{f"{prefix}project__owner": user})


class SetQuerySet(InProjectQuerySet):
    def for_list(self) -> Self:
        return self.select_related("project", "source__dataset")


class InSetQuerySet(InProjectQuerySet):
    set_path = "set"


class InTaskQuerySet(InProjectQuerySet):
    set_path = "task__set"
