"""Tables of annotation projects: members, sets, classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from annotation.querysets import InSetQuerySet, ProjectQuerySet, SetQuerySet
from datasets import shapes

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

#: A class whose objects may be of any kind.
ANY_SHAPE = "any"


def drawn_as() -> list[tuple[str, StrPromise | str]]:
    """(value, label) of what a class is drawn as: one of the kinds, or any of them."""
    return [*shapes.choices(), (ANY_SHAPE, _("Any shape"))]


class AnnotationProject(models.Model):
    """A piece of annotation work: several datasets, one group of people."""

    name = models.CharField(_("name"), max_length=100)
    intro = models.CharField(_("description"), max_length=500, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="owned_annotation_projects")
    members: models.ManyToManyField = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        through="ProjectMember",
        through_fields=("project", "user"),
        related_name="annotation_projects",
    )
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("annotation project")
        verbose_name_plural = _("annotation projects")
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="annotation_project_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class ProjectMember(models.Model):
    """A member of a project and their role. Each role includes those before it; the owner may do everything."""

    class Role(models.TextChoices):
        VIEWER = "viewer", _("Viewer")
        ANNOTATOR = "annotator", _("Annotator")
        REVIEWER = "reviewer", _("Reviewer")
        MANAGER = "manager", _("Manager")

    project = models.ForeignKey(AnnotationProject, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="annotation_memberships")
    role = models.CharField(_("role"), max_length=9, choices=Role, default=Role.ANNOTATOR)
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="annotation_member_once")]

    def __str__(self) -> str:
        return f"{self.user} · {self.project}"


class AnnotationSet(models.Model):
    """A dataset version that is annotated in a project."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Members of the project")
        PUBLIC = "public", _("Everyone with annotation permission")

    class Kind(models.TextChoices):
        IMAGE = "image", _("Images")

    project = models.ForeignKey(AnnotationProject, models.CASCADE, related_name="sets", verbose_name=_("project"))
    name = models.CharField(_("name"), max_length=100)
    intro = models.CharField(_("description"), max_length=500, blank=True)
    visibility = models.CharField(_("open to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    source = models.ForeignKey(
        "datasets.DatasetVersion", models.PROTECT, related_name="annotation_sets", verbose_name=_("source")
    )
    kind = models.CharField(_("type"), max_length=8, choices=Kind, default=Kind.IMAGE)
    filled = models.BooleanField(default=False, editable=False)  # every image of the source has its task
    with_shapes = models.BooleanField(default=False, editable=False)  # what the source carries is drawn on them
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = SetQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("annotation dataset")
        verbose_name_plural = _("annotation datasets")
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="annotation_set_once_per_project")]

    def __str__(self) -> str:
        return self.name


class LabelClass(models.Model):
    """A class of objects. Its `coco_id` never changes and is never given twice.

    Classes of the source keep the ids they have there, those made here count on behind them.
    """

    set = models.ForeignKey(AnnotationSet, models.CASCADE, related_name="labels")
    coco_id = models.IntegerField()
    name = models.CharField(_("name"), max_length=200)
    supercategory = models.CharField(_("parent type"), max_length=200, blank=True)
    shape = models.CharField(_("shape"), max_length=20, choices=drawn_as, default=shapes.DEFAULT.name)
    colour = models.CharField(
        _("color"), max_length=7, validators=[RegexValidator(r"^#[0-9a-f]{6}\Z", _("A color such as #1c7ed6."))]
    )
    retired = models.BooleanField(default=False, editable=False)  # removed before use; its id stays taken

    objects = InSetQuerySet.as_manager()

    class Meta:
        ordering = ["coco_id"]
        verbose_name = _("class")
        verbose_name_plural = _("classes")
        constraints = [
            models.UniqueConstraint(fields=["set", "coco_id"], name="label_id_once_per_set"),
            models.UniqueConstraint(
                fields=["set", "name"], condition=models.Q(retired=False), name="label_name_once_per_set"
            ),
        ]

    def __str__(self) -> str:
        return self.name
