"""The class that is drawn first when somebody opens an image."""

from __future__ import annotations

from collections import Counter

from accounts.models import User
from annotation.models import AnnotationSet, LabelClass, ShapeEvent

RECENT_EDITS = 500  # of all users, from which the most frequent class is found


def for_user(annotation_set: AnnotationSet, user: User) -> int | None:
    """Return the id of the class that the user drew last in this project, else of the most frequent class.

    Classes of another set of the project are found by their names. None: the set has no objects yet.
    """
    labels = dict(annotation_set.labels.filter(retired=False).values_list("pk", "name"))
    edits = ShapeEvent.objects.filter(op=ShapeEvent.Op.PUT).order_by("-pk")
    own = edits.filter(by=user, task__set__project=annotation_set.project_id).values_list("data__label", flat=True)
    if (last := own.first()) is not None:
        if last in labels:
            return int(last)
        name = LabelClass.objects.filter(pk=last).values_list("name", flat=True).first()
        if (match := next((pk for pk, label in labels.items() if label == name), None)) is not None:
            return match
    recent = edits.filter(task__set=annotation_set).values_list("data__label", flat=True)[:RECENT_EDITS]
    counted = Counter(pk for pk in recent if pk in labels) or _counted_in_source(annotation_set)
    return counted.most_common(1)[0][0] if counted else None


def _counted_in_source(annotation_set: AnnotationSet) -> Counter[int]:
    """Count the objects of each class in the version that is annotated."""
    by_split = (annotation_set.source.figures or {}).get("objects", {}).values()
    counted: Counter[int] = Counter()
    for pk, number in annotation_set.labels.filter(retired=False).values_list("pk", "coco_id"):
        counted[pk] = sum(counts.get(str(number), 0) for counts in by_split)
    return +counted
