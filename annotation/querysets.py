"""Querysets of annotation: which rows a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from accounts.access import sharing
from accounts.access.querysets import OwnedQuerySet

if TYPE_CHECKING:
    from accounts.models import User


PROJECT = "annotation.annotationproject"
#: The roles in a project that hold a level.
ROLES = {
    sharing.VIEW: ("viewer", "annotator", "reviewer", "manager"),
    sharing.ANNOTATE: ("annotator", "reviewer", "manager"),
    sharing.REVIEW: ("reviewer", "manager"),
    sharing.MANAGE: ("manager",),
}
#: Reviewed images: they have objects, were submitted without one, or were imported with annotations.
LOOKED_AT = Q(shape_count__gt=0) | Q(state__in=("submitted", "accepted")) | Q(coco_id__isnull=False)
#: What a public set gives to everyone.
PUBLIC = (sharing.VIEW, sharing.ANNOTATE)


def _in_role(user: User, level: str) -> QuerySet[Any]:
    """Ids of the projects in which this person has a role that includes `level`."""
    return user.annotation_memberships.filter(role__in=ROLES[level]).values("project")


class ProjectQuerySet(OwnedQuerySet):
    """Projects: seen by owner, members, those they are shared with, and all once a set of theirs is public."""

    shared = (PROJECT, "pk")

    def visible_to(self, user: User) -> Self:
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        public = self.model.sets.rel.related_model.objects.filter(project=OuterRef("pk"), visibility="public")
        mine = Q(owner=user) | Q(pk__in=_in_role(user, sharing.VIEW)) | Q(Exists(public))
        return self.filter(mine | self._shared_with(user, sharing.VIEW))

    def editable_by(self, user: User) -> Self:
        """Projects this person may change: own, those they manage, and for operators all of them."""
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        mine = Q(owner=user) | Q(pk__in=_in_role(user, sharing.MANAGE))
        return self.filter(mine | self._shared_with(user, sharing.MANAGE))

    def for_list(self) -> Self:
        return self.select_related("owner").annotate(set_count=Count("sets", distinct=True))


class InProjectQuerySet(OwnedQuerySet):
    """Rows inside an annotation set. `set_path` leads there ("" when the row is the set itself)."""

    set_path = ""

    def visible_to(self, user: User) -> Self:
        return self._in_projects(user, sharing.VIEW)

    def annotatable_by(self, user: User) -> Self:
        """Rows this person may draw on; projects they may only look at are left out."""
        return self._in_projects(user, sharing.ANNOTATE)

    def reviewable_by(self, user: User) -> Self:
        """Rows this person may accept or send back: those of projects they review or manage."""
        return self._in_projects(user, sharing.REVIEW)

    def editable_by(self, user: User) -> Self:
        """Rows of projects this person may change."""
        return self._in_projects(user, sharing.MANAGE)

    def _in_projects(self, user: User, level: str) -> Self:
        if not user.is_authenticated:
            return self.none()
        if user.sees_everything:
            return self
        prefix = f"{self.set_path}__" if self.set_path else ""
        mine = Q(**{f"{prefix}project__owner": user}) | Q(**{f"{prefix}project__in": _in_role(user, level)})
        if level in PUBLIC:
            mine |= Q(**{f"{prefix}visibility": "public"})
        return self.filter(mine | sharing.shared_with(user, PROJECT, f"{prefix}project", level))


class SetQuerySet(InProjectQuerySet):
    def for_list(self) -> Self:
        return self.select_related("project", "source__dataset")


class InSetQuerySet(InProjectQuerySet):
    set_path = "set"


class InTaskQuerySet(InProjectQuerySet):
    set_path = "task__set"
