"""Fill a set from its version: a task per image and, where they are wanted, the shapes the version carries.

Both come in the same transaction, some images at a time, so an interrupted call is continued by the next one.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, F, Max, QuerySet
from django.db.models.functions import Coalesce

from annotation.models import AnnotationSet, ImageTask, LabelClass, Shape
from annotation.models.projects import ANY_SHAPE
from annotation.services import coco
from datasets import shapes
from datasets.formats import stored
from datasets.formats.exports import Drawn
from datasets.formats.neutral import SHAPES
from datasets.models import DatasetVersion
from datasets.shapes.kind import Flaw

BATCH = 2_000
SHAPES_AT_ONCE = 2_000  # rows per INSERT
LOOKED_AT = 500  # images whose shapes say how a class is drawn
NAME_LENGTH = 200
FINISHED = {ImageTask.State.SUBMITTED, ImageTask.State.ACCEPTED}
#: Fields of an annotation that a row has columns for.
KEPT_BESIDE = {"id", "image_id", "category_id", "segmentation"}


def take_classes(annotation_set: AnnotationSet) -> None:
    """Give a new set the classes of its version, with their ids, drawn as their shapes are."""
    source: DatasetVersion = annotation_set.source
    kinds = _kinds(source) if source.task == SHAPES else {}
    colors, taken = source.class_colors, set[str]()
    for item in source.classes:
        name = str(item["name"])[:NAME_LENGTH]
        if name in taken:  # COCO tells classes apart by their ids, people by their names
            name = f"{name[: NAME_LENGTH - 20]} ({item['id']})"
        taken.add(name)
        LabelClass.objects.create(
            set=annotation_set,
            coco_id=item["id"],
            name=name,
            supercategory=str(item.get("supercategory") or "")[:NAME_LENGTH],
            shape=kinds.get(item["id"], shapes.DEFAULT.name),
            colour=colors[item["id"]],
        )


def _kinds(version: DatasetVersion) -> dict[int, str]:
    """Map class ids to the drawable kind of their shapes on the first images, or any if there are several."""
    names = dict(shapes.choices())
    kinds_by_class: dict[int, set[str]] = defaultdict(set)
    for drawn in version.assets.order_by("pk").values_list("shapes", flat=True)[:LOOKED_AT]:
        for class_id, kind, _points in drawn:
            kinds_by_class[class_id].add(kind if kind in names else shapes.DEFAULT.name)
    return {class_id: kinds.pop() if len(kinds) == 1 else ANY_SHAPE for class_id, kinds in kinds_by_class.items()}


def create_tasks(set_id: int) -> None:
    """Create the missing image tasks of a set, with their shapes; continues after an interrupted call."""
    annotation_set = AnnotationSet.objects.select_related("source").filter(pk=set_id, filled=False).first()
    if annotation_set is None:
        return
    if annotation_set.with_shapes and annotation_set.source.task == SHAPES:
        _fill_with_shapes(annotation_set)
    else:
        _fill_with_images(annotation_set)
    AnnotationSet.objects.filter(pk=set_id).update(filled=True)


def _last(annotation_set: AnnotationSet) -> tuple[int, int]:
    """Number and image of the last task there is."""
    last = annotation_set.tasks.aggregate(number=Max("number"), asset=Max("asset_id"))
    return last["number"] or 0, last["asset"] or 0


def _fill_with_images(annotation_set: AnnotationSet) -> None:
    while True:
        with transaction.atomic():
            number, asset = _last(annotation_set)
            missing = annotation_set.source.assets.filter(pk__gt=asset).order_by("pk")
            assets = list(missing.values_list("pk", flat=True)[:BATCH])
            ImageTask.objects.bulk_create(
                ImageTask(set=annotation_set, asset_id=asset, number=n) for n, asset in enumerate(assets, number + 1)
            )
        if len(assets) < BATCH:
            return


def _fill_with_shapes(annotation_set: AnnotationSet) -> None:
    labels = dict(annotation_set.labels.values_list("coco_id", "pk"))
    done, _asset = _last(annotation_set)
    rest = islice(enumerate(_images(annotation_set.source), 1), done, None)
    while several := list(islice(rest, BATCH // 4)):
        with transaction.atomic():
            tasks = ImageTask.objects.bulk_create(
                ImageTask(
                    set=annotation_set,
                    asset_id=asset,
                    number=number,
                    coco_id=coco_id,
                    shape_count=len(drawn),
                )
                for number, (asset, coco_id, drawn) in several
            )
            made = (
                _shape(annotation_set, task, labels, entry)
                for task, (_number, (_asset, _coco_id, drawn)) in zip(tasks, several, strict=True)
                for entry in drawn
            )
            while part := list(islice(made, SHAPES_AT_ONCE)):
                Shape.objects.bulk_create(part)


def _images(version: DatasetVersion) -> Iterator[tuple[int, int | None, list[dict[str, Any]]]]:
    """Row, COCO id and annotations of every image in order; no id for one that annotations.json does not list."""
    listed = stored.by_image(version.path)
    following = next(listed, None)
    for asset, path in version.assets.order_by("pk").values_list("pk", "path").iterator(chunk_size=BATCH):
        if following is not None and following[0]["file_name"] == path:
            yield asset, following[0]["id"], following[1]
            following = next(listed, None)
        else:
            yield asset, None, []


def _shape(annotation_set: AnnotationSet, task: ImageTask, labels: dict[int, int], entry: dict[str, Any]) -> Shape:
    was = shapes.of_stored(entry)
    name, rings = was.editable(entry)
    x, y, width, height = entry["bbox"]
    came = {key: value for key, value in entry.items() if key not in KEPT_BESIDE}
    if name != was.name:  # the drawable kind replaces it only after a change
        came["segmentation"] = entry["segmentation"]
    return Shape(
        task=task,
        uuid=uuid.uuid4(),
        label_id=labels[entry["category_id"]],
        kind=name,
        rings=rings,
        x=x,
        y=y,
        width=width,
        height=height,
        area=max(float(entry["area"]), 0.0),
        source=Shape.Source.IMPORTED,
        coco_id=entry["id"],
        came_as=came,
        created_by_id=annotation_set.created_by_id,
        updated_by_id=annotation_set.created_by_id,
    )


def images_of(annotation_set: AnnotationSet) -> QuerySet[Any]:
    """The tasks of a set with `image_id`: the COCO id they came with, behind those the others by their rows."""
    tasks = ImageTask.objects.filter(set=annotation_set)
    behind = tasks.aggregate(last=Max("coco_id"))["last"] or 0
    number = Coalesce("coco_id", F("pk") + behind, output_field=BigIntegerField())
    return tasks.annotate(image_id=number).order_by("number")


def shapes_of(annotation_set: AnnotationSet) -> Iterator[tuple[Any, ...]]:
    """What an export needs of every living shape, in the order of their COCO ids.

    Objects that came with the version keep their ids, those drawn here count on behind them.
    """
    images = dict(images_of(annotation_set).values_list("pk", "image_id"))
    rows = Shape.objects.filter(task__set=annotation_set)
    behind = rows.aggregate(last=Max("coco_id"))["last"] or 0
    columns = ("pk", "task_id", "label__coco_id", "rings", "kind", "rev", "came_as", "coco_id")
    living = rows.filter(deleted=False).values_list(*columns)
    for part in (living.exclude(coco_id=None).order_by("coco_id"), living.filter(coco_id=None).order_by("pk")):
        for pk, task, category, rings, kind, rev, came_as, number in part.iterator(chunk_size=2_000):
            yield number or behind + pk, images[task], category, rings, kind, came_as, rev == 1


def drawn_images(annotation_set: AnnotationSet) -> Iterator[Drawn]:
    """Yield every image with its objects, in batches; images that were not reviewed are not annotated."""
    rows = images_of(annotation_set).select_related("asset")
    labels = dict(annotation_set.labels.values_list("pk", "coco_id"))
    tasks = rows.iterator(chunk_size=BATCH)
    while batch := list(islice(tasks, BATCH // 4)):
        by_task: dict[int, list[Shape]] = defaultdict(list)
        for shape in Shape.objects.filter(task__in=batch, deleted=False).order_by("pk"):
            by_task[shape.task_id].append(shape)
        for task in batch:
            objects = [_as_coco(shape, task, labels[shape.label_id]) for shape in by_task[task.pk]]
            is_annotated = bool(objects) or task.state in FINISHED or task.coco_id is not None
            asset = task.asset
            complete = [entry for entry in objects if entry is not None]
            yield Drawn(asset.path, asset.width, asset.height, asset.split, is_annotated, complete)


def _as_coco(shape: Shape, task: ImageTask, category: int) -> dict[str, Any] | None:
    """A shape as COCO has it; None for one that is not fit to be written, which the report on the COCO file counts."""
    came_as, untouched = shape.came_as, shape.rev == 1
    annotation = coco.Annotation(shape.pk, task.pk, category, shape.rings, shape.kind, came_as, untouched)
    fields = coco.fields_of(annotation, task.asset.width, task.asset.height)
    return None if isinstance(fields, Flaw) else {"category_id": category, **fields}
