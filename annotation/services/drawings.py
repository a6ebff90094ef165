"""Shapes of images as small drawings over their thumbnails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from annotation.models import ImageTask, Shape
from datasets import shapes as kinds

MAX_SHAPES = 200  # more shapes than this on a thumbnail are a blur
POINTS = 60  # of one part; a longer one is drawn with every second, third … point


def for_tasks(tasks: Iterable[ImageTask]) -> dict[int, SafeString]:
    """Return SVG over the upright image by task id, for `tasks` (with their assets) that have shapes; one query."""
    sizes = {task.pk: (task.asset.width, task.asset.height) for task in tasks}
    row_number = Window(RowNumber(), partition_by=F("task"), order_by=F("pk").asc())
    drawn = Shape.objects.filter(task__in=sizes, deleted=False).annotate(place=row_number).filter(place__lte=MAX_SHAPES)
    columns = drawn.values_list("task", "kind", "rings", "x", "y", "width", "height", "label__colour")
    paths: dict[int, list[SafeString]] = {}
    for task, name, rings, x, y, width, height, colour in columns:
        kind = kinds.get(name)
        shape = {"segmentation": rings, "attributes": {"rings": rings}, "bbox": [x, y, width, height]}
        for points in kind.drawn(shape):
            paths.setdefault(task, []).append(_path(kind, _thinned(points), colour))
    return {task: _svg(paths[task], *sizes[task]) for task in paths}


def _path(kind: kinds.ShapeKind, points: list[float], colour: str) -> SafeString:
    fill = colour if kind.covers_area else "none"
    return format_html('<path d="{}" stroke="{}" fill="{}"/>', kind.svg(points), colour, fill)


def _thinned(points: list[float]) -> list[float]:
    step = -(-len(points) // (2 * POINTS))
    return points if step <= 1 else [value for at in range(0, len(points), 2 * step) for value in points[at : at + 2]]


def _svg(paths: list[SafeString], width: Any, height: Any) -> SafeString:
    inside = format_html_join("", "{}", ((path,) for path in paths))
    head = (
        '<svg class="tile-shapes" viewBox="0 0 {} {}" preserveAspectRatio="xMidYMid meet" aria-hidden="true">{}</svg>'
    )
    return format_html(head, width, height, inside)
