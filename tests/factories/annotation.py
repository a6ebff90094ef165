"""Annotation projects for tests, made by the product's own services."""

from __future__ import annotations

import uuid
from typing import Any

from accounts.models import User
from annotation.api.edits import read
from annotation.models import AnnotationProject, AnnotationSet, Export, ImageTask
from annotation.services import exports, journal, projects, sets
from tests.factories import datasets as data

LETTERS = str.maketrans("0123456789", "ghijklmnop")  # a name with figures in it would look like a count on a page
LABELS = [
    {"supercategory": "animal", "name": "cat", "shape": "any"},
    {"supercategory": "thing", "name": "box", "shape": "bbox"},
]


def project(owner: User, name: str = "Blood") -> AnnotationProject:
    return projects.create(owner=owner, name=name, intro="Cells under a microscope")


def annotation_set(
    owner: User, *, images: int = 3, of: AnnotationProject | None = None, name: str = "smears", **fields: Any
) -> AnnotationSet:
    """A set of 40×30 images with a class "cat" of any shape and a box class "box"."""
    unique = f"{name}-{uuid.uuid4().hex.translate(LETTERS)[:6]}"
    source = data.version(data.dataset(owner, unique), images=images, task="none")
    return sets.create(
        project=of or project(owner), name=name, intro="Three images", source=source, by=owner, labels=LABELS, **fields
    )


def first_task(owner: User, **fields: Any) -> ImageTask:
    return annotation_set(owner, **fields).tasks.select_related("asset").get(number=1)


def put(task: ImageTask, *, label: int | None = None, rings: Any = None, **fields: Any) -> dict[str, Any]:
    """An edit that draws a triangle, or what is asked."""
    return {
        "id": str(uuid.uuid4()),
        "shape": str(uuid.uuid4()),
        "op": "put",
        "base": 0,
        "kind": "polygon",
        "label": label or task.set.labels.get(name="cat").pk,
        "rings": rings or [[1.0, 1.0, 11.0, 1.0, 11.0, 11.0]],
    } | fields


def apply(task: ImageTask, *events: Any, by: User) -> journal.Outcome:
    """Send edits the way the API takes them."""
    return journal.apply(task=task, edits=read({"events": list(events)}), by=by)


def draw(task: ImageTask, by: User, count: int = 1) -> None:
    apply(task, *[put(task) for _ in range(count)], by=by)


def converted(annotation_set: AnnotationSet, by: User, **asked: Any) -> Export:
    """A conversion of the set, done."""
    export = exports.start(annotation_set=annotation_set, by=by, **asked)
    exports.convert(export.pk)
    export.refresh_from_db()
    return export
