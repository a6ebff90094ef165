"""Pages of images in their order, by key, so that late pages cost what the first costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from aiplatform.lib import ids
from annotation.models import ImageTask, Shape

SIZE = 20


@dataclass(frozen=True, slots=True)
class TilePage:
    """Images of one page; `first` to `last` of `total`, counted from 1 within the filter."""

    rows: list[ImageTask]
    total: int
    first: int
    following: int | None  # number the next page starts from
    preceding: int | None

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def page(
    tasks: QuerySet[Any], *, state: str = "", label: int | None = None, drawn: bool | None = None, start: str = ""
) -> TilePage:
    """The images from number `start` on, of one state or all.

    Args:
        label: only images with objects of this class.
        drawn: only images with objects, or without; None takes both.
        start: as it stood in the URL; anything but a number means the beginning.
    """
    rows = (tasks.filter(state=state) if state else tasks).order_by("number")
    if label is not None:
        rows = rows.filter(Exists(Shape.objects.filter(task=OuterRef("pk"), label=label, deleted=False)))
    if drawn is not None:
        rows = rows.filter(shape_count__gt=0) if drawn else rows.filter(shape_count=0)
    begin = min(ids.number(start) or 1, 10**9)
    tasks_and_next = list(rows.filter(number__gte=begin).select_related("asset", "updated_by")[: SIZE + 1])
    before = rows.filter(number__lt=begin)
    skipped = before.count()
    back = list(before.order_by("-number").values_list("number", flat=True)[:SIZE])
    return TilePage(
        rows=tasks_and_next[:SIZE],
        total=rows.count(),
        first=skipped + 1 if tasks_and_next else 0,
        following=tasks_and_next[SIZE].number if len(tasks_and_next) > SIZE else None,
        preceding=back[-1] if back else None,
    )
