"""Querysets of datasets: which rows a person may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import OuterRef, Subquery

from accounts.access.querysets import OwnedQuerySet
from aiplatform.lib import search
from aiplatform.lib.columns import USER_NAMES, narrow

if TYPE_CHECKING:
    from accounts.models import User


class DatasetQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
    shared = ("datasets.dataset", "pk")

    def visible_to(self, user: User) -> Self:
        """Own, public, shared and (for operators) all datasets that are not being removed."""
        return super().visible_to(user).filter(deleting=False)

    def usable_by(self, user: User) -> Self:
        return super().usable_by(user).filter(deleting=False)

    def editable_by(self, user: User) -> Self:
        return super().editable_by(user).filter(deleting=False)

    def for_list(self) -> Self:
        """With owner and the figures of the newest version: newest_id, newest_number, newest_images, …"""
        newest = self.model.versions.rel.related_model.objects.filter(dataset=OuterRef("pk"), state="ready").order_by(
            "-number"
        )
        tried = self.model.imports.rel.related_model.objects.filter(dataset=OuterRef("pk")).order_by("-pk")
        return narrow(self.select_related("owner"), owner=USER_NAMES).annotate(
            newest_id=Subquery(newest.values("pk")[:1]),
            newest_number=Subquery(newest.values("number")[:1]),
            newest_annotated=Subquery(newest.values("annotated")[:1]),
            newest_images=Subquery(newest.values("image_count")[:1]),
            newest_bytes=Subquery(newest.values("size_bytes")[:1]),
            newest_task=Subquery(newest.values("task")[:1]),
            open_import=Subquery(tried.filter(state__in=tried.model.OPEN).values("state")[:1]),
            last_import=Subquery(tried.values("state")[:1]),
        )

    def named_like(self, text: str) -> Self:
        """Return datasets whose name or description contains each word of `text`."""
        return search.filter_by_text(self, text, "name", "intro")


class VersionQuerySet(OwnedQuerySet):
    owner_path = "dataset__owner"
    visibility_path = "dataset__visibility"
    shared = ("datasets.dataset", "dataset")

    def visible_to(self, user: User) -> Self:
        """Versions that are whole, of datasets this person may see."""
        return super().visible_to(user).filter(state="ready", dataset__deleting=False)

    def with_cover(self) -> Self:
        """Add `cover`: the image that represents the version, its first by name; None without images."""
        named = self.model.assets.rel.related_model.objects.filter(version=OuterRef("pk")).order_by("path")
        return self.annotate(cover=Subquery(named.values("pk")[:1]))

    def usable_by(self, user: User) -> Self:
        """Versions that are whole, of datasets this person may train with, evaluate on and annotate."""
        return super().usable_by(user).filter(state="ready", dataset__deleting=False)

    def for_choice(self) -> Self:
        """What a choice in a form shows; the other columns of the chosen row are read when they are needed."""
        shown = ("number", "task", "annotated", "classes", "image_count", "annotation_count", "dataset__name")
        return self.select_related("dataset").only(*shown)


class AssetQuerySet(OwnedQuerySet):
    owner_path = "version__dataset__owner"
    visibility_path = "version__dataset__visibility"
    shared = ("datasets.dataset", "version__dataset")

    def visible_to(self, user: User) -> Self:
        return super().visible_to(user).filter(version__state="ready", version__dataset__deleting=False)

    def of_version(
        self,
        version_id: int,
        *,
        split: str | None = None,
        class_id: int | None = None,
        annotated: bool | None = None,
        content: int | None = None,
        text: str = "",
    ) -> Self:
        """Return images of a version; an index serves every filter.

        Args:
            split: name of a split; "" for images without one, None for all.
            class_id: a class of their objects.
            annotated: whether they have any object; None for both.
            content: a value of `Asset.Content`; None for all.
            text: the path contains each of its words.
        """
        with_objects = self.model.Content.OBJECTS
        rows = self.filter(version=version_id)
        if class_id is not None:
            rows = rows.with_class(version_id, class_id, split)
        elif split is not None:
            rows = rows.filter(split=split)
        if annotated is not None:
            rows = rows.filter(content=with_objects) if annotated else rows.filter(content__lt=with_objects)
        if content is not None:
            rows = rows.filter(content=content)
        if text.strip():  # searched in the index of paths, as rows with their shapes are long
            named = search.filter_by_text(self.model.objects.filter(version=version_id).order_by(), text, "path")
            rows = rows.filter(pk__in=named.values("pk"))
        return rows

    def with_class(self, version_id: int, class_id: int, split: str | None = None) -> Self:
        """Return images of a version (and split) with the class, found by index in the order of their keys."""
        matching: dict[str, Any] = {"class_rows__version": version_id, "class_rows__class_id": class_id}
        return self.filter(**matching, **({} if split is None else {"class_rows__split": split}))


class ImportQuerySet(OwnedQuerySet):
    """Imports, visible to those who may change the dataset, also where it is public."""

    owner_path = "dataset__owner"
    shared = ("datasets.dataset", "dataset")

    def visible_to(self, user: User) -> Self:
        return self.editable_by(user).filter(dataset__deleting=False)


class UploadQuerySet(OwnedQuerySet):
    """Uploads, visible to their owner only, not to operators."""

    def visible_to(self, user: User) -> Self:
        return self.filter(owner=user) if user.is_authenticated else self.none()
