"""Annotation sets: dataset versions in a project, and the classes of their objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from django.db import IntegrityError, transaction
from django.db.models import Count, Max
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from aiplatform.lib import class_colors, units
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals, StillInUse
from annotation.models import AnnotationProject, AnnotationSet, LabelClass, Shape
from annotation.models.projects import drawn_as
from annotation.services import projects, task_creation
from datasets import shapes
from datasets.models import DatasetVersion

AT_ONCE = 2_000  # images and shapes that are taken within the request; more are taken by the CPU worker
MAX_CLASSES = 1_000


class SourceNotFit(DomainError, code="source_not_fit", field="source"):
    """Only a dataset that is ready and has images can be annotated."""


class ClassInUse(StillInUse, code="class_in_use"): ...


def create(
    *,
    project: AnnotationProject,
    name: str,
    source: DatasetVersion,
    by: User,
    intro: str = "",
    visibility: str = AnnotationSet.Visibility.PRIVATE,
    labels: Iterable[Mapping[str, str]] = (),
    with_shapes: bool = True,
) -> AnnotationSet:
    """Add a dataset version to `project` for annotation; its classes come along with their ids.

    Args:
        labels: further classes as `add_label` takes them; names the version has are passed over.
        with_shapes: what is drawn in the version comes along too, and people go on with it.

    Raises:
        SourceNotFit: the version is not ready or has no images.
        NameTaken: the project has a dataset of that name.
        Invalid: name, introduction or a class is wrong.
    """
    check(project=project, name=name, intro=intro, visibility=visibility, source=source)
    with transaction.atomic():
        made = AnnotationSet(project=project, source=source, created_by=by, with_shapes=with_shapes)
        _save(made, name=name, intro=intro, visibility=visibility)
        task_creation.take_classes(made)
        names = set(made.labels.values_list("name", flat=True))
        for label in labels:
            if " ".join(label["name"].split()) not in names:
                add_label(made, **label)
        if source.image_count + (source.annotation_count if with_shapes else 0) > AT_ONCE:
            enqueue("annotation.fill", set_id=made.pk)
        else:
            task_creation.create_tasks(made.pk)
    made.refresh_from_db()
    return made


def check(
    *,
    project: AnnotationProject,
    name: str | None = None,
    intro: str | None = None,
    visibility: str | None = None,
    source: DatasetVersion | None = None,
) -> None:
    """Raise all errors that `create` would raise for these values, and write nothing."""
    refusals = _check(AnnotationSet(project=project), name, intro, visibility)
    with refusals:
        if source is not None:
            _check_source(source)
    refusals.end()


def _check_source(source: DatasetVersion) -> None:
    if not source.is_ready or not source.image_count:
        raise SourceNotFit(_("%(source)s has no imported images.") % {"source": source})


@transaction.atomic
def create_with_project(
    *,
    owner: User,
    source: DatasetVersion,
    name: str,
    intro: str = "",
    labels: Iterable[Mapping[str, str]] = (),
    with_shapes: bool = True,
) -> AnnotationSet:
    """Create a project that holds `source`; arguments and errors as of `projects.create` and `create`."""
    refusals = Refusals()
    with refusals:
        projects.check(owner=owner, name=name, intro=intro)
    with refusals:
        _check_source(source)
    refusals.end()
    project = projects.create(owner=owner, name=name, intro=intro)
    return create(project=project, name=str(source), source=source, by=owner, labels=labels, with_shapes=with_shapes)


def edit(annotation_set: AnnotationSet, *, name: str, intro: str, visibility: str) -> AnnotationSet:
    """Rename, describe or open a set; its source stays what it is."""
    return _save(annotation_set, name=name, intro=intro, visibility=visibility)


def _save(annotation_set: AnnotationSet, *, name: str, intro: str, visibility: str) -> AnnotationSet:
    _check(annotation_set, name, intro, visibility).end()
    annotation_set.name, annotation_set.intro = name.strip(), intro.strip()
    annotation_set.visibility = visibility
    try:
        with transaction.atomic():
            annotation_set.save()
    except IntegrityError:
        raise _taken() from None
    return annotation_set


def _check(annotation_set: AnnotationSet, name: str | None, intro: str | None, visibility: str | None) -> Refusals:
    """Collect the errors in the set's name, description and visibility."""
    refusals = Refusals()
    others = AnnotationSet.objects.filter(project=annotation_set.project_id).exclude(pk=annotation_set.pk)
    if name is not None:
        with refusals:
            projects.check_name(name)
            if others.filter(name=name.strip()).exists():
                raise _taken()
    if intro is not None:
        with refusals:
            projects.check_intro(intro)
    with refusals:
        if visibility is not None and visibility not in AnnotationSet.Visibility.values:
            raise Invalid(_("Choose members or everyone."), field="visibility")
    return refusals


def _taken() -> NameTaken:
    return NameTaken(_("The project already has a dataset with this name."))


def delete(annotation_set: AnnotationSet) -> None:
    """Delete a set with its classes, shapes and conversions; the dataset itself stays."""
    annotation_set.delete()


def add_label(
    annotation_set: AnnotationSet,
    *,
    name: str,
    supercategory: str = "",
    shape: str = shapes.DEFAULT.name,
    colour: str = "",
) -> LabelClass:
    """Add a class; its id is the largest one ever given in this set plus 1.

    Args:
        colour: "#rrggbb"; "" takes the next one of the palette.

    Raises:
        Invalid: the name empty, it or the parent type over 50 characters, unknown shape, odd colour.
        NameTaken: the set has a class of that name.
    """
    with transaction.atomic():
        AnnotationSet.objects.select_for_update().get(pk=annotation_set.pk)
        taken = annotation_set.labels.aggregate(last=Max("coco_id"), count=Count("pk"))
        if taken["count"] >= MAX_CLASSES:
            raise Invalid(_("A dataset can have at most 1,000 classes."), field="name")
        label = LabelClass(set=annotation_set, coco_id=max(taken["last"] or 0, 0) + 1)
        return _save_label(label, name, supercategory, shape, colour or _next_color(annotation_set))


def _next_color(annotation_set: AnnotationSet) -> str:
    used = list(annotation_set.labels.values_list("colour", flat=True))
    return class_colors.unused(used, len(used))


def edit_label(label: LabelClass, *, name: str, supercategory: str, shape: str, colour: str) -> LabelClass:
    """Rename, recolour or regroup; shapes keep their class, exports their ids."""
    return _save_label(label, name, supercategory, shape, colour)


def _save_label(label: LabelClass, name: str, supercategory: str, shape: str, colour: str) -> LabelClass:
    label.name, label.supercategory = " ".join(name.split()), " ".join(supercategory.split())
    label.shape, label.colour = shape, colour.lower()
    refusals = Refusals()
    with refusals:
        if not 1 <= len(label.name) <= 50:
            raise Invalid(_("A class name must have 1 to 50 characters."), field="name")
        others = LabelClass.objects.filter(set=label.set_id, retired=False).exclude(pk=label.pk)
        if others.filter(name=label.name).exists():
            raise _name_taken(label)
    with refusals:
        if len(label.supercategory) > 50:
            raise Invalid(_("A parent type can have at most 50 characters."), field="supercategory")
    with refusals:
        names = dict(drawn_as())
        if shape not in names:
            raise Invalid(
                _("The shape of a class must be one of: %(kinds)s.") % {"kinds": ", ".join(names)}, field="shape"
            )
    with refusals:
        if not re.fullmatch(r"#[0-9a-f]{6}", label.colour):
            raise Invalid(_("A color must look like #1c7ed6."), field="colour")
    refusals.end()
    try:
        with transaction.atomic():
            label.save()
    except IntegrityError:
        raise _name_taken(label) from None
    return label


def _name_taken(label: LabelClass) -> NameTaken:
    return NameTaken(_("The class %(name)s already exists.") % {"name": label.name})


@transaction.atomic
def remove_label(label: LabelClass) -> None:
    """Remove an unused class.

    A user may be drawing with it right now: the row stays, retired, and becomes active again
    when a shape of it arrives. Its id is never given again.

    Raises:
        ClassInUse: shapes have this class.
    """
    used = Shape.objects.filter(label=label, deleted=False).count()
    if used:
        text = ngettext("%(name)s has %(count)s object.", "%(name)s has %(count)s objects.", used)
        raise ClassInUse(text % {"name": label.name, "count": units.Count(used)}, objects=used)
    LabelClass.objects.filter(pk=label.pk).update(retired=True)


def revive(label_ids: set[int]) -> None:
    """Bring retired classes back because shapes of them were sent.

    If meanwhile another class took the name, the returning one gets its id behind it.
    """
    for label in LabelClass.objects.filter(pk__in=label_ids, retired=True):
        label.retired = False
        if LabelClass.objects.filter(set=label.set_id, name=label.name, retired=False).exists():
            label.name = f"{label.name[:40]} ({label.coco_id})"
        label.save(update_fields=["retired", "name"])
