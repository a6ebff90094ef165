"""A lineage as a drawing: where each box and line stands. Boxes of one column stand below each other."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from inference.registry.lineage import Graph, Node

WIDE, HIGH, GAP, APART, EDGE = 184, 48, 56, 12, 8
MAX_SIGNS = 24

KIND_LABELS = {
    "dataset": _("Dataset"),
    "training": _("Training"),
    "job": _("Job"),
    "version": _("Model version"),
    "evaluation": _("Evaluation"),
    "prediction": _("Batch prediction"),
    "service": _("Endpoint"),
    "package": _("Package"),
    "file": _("File"),
}
HOW_LABELS = {
    "made": pgettext_lazy("lineage", "left"),
    "data": pgettext_lazy("lineage", "trained on"),
    "fine_tuned": _("fine-tuned"),
    "distilled": _("distilled"),
    "part": _("part"),
    "judged": _("evaluated"),
    "served": _("serves it"),
    "answered": _("predicted"),
    "drafted": _("drafted"),
    "packed": _("packed"),
}


@dataclass(frozen=True)
class Box:
    """One thing at its place, all numbers as SVG wants them."""

    node: Node
    word: object
    short: str
    x: str
    y: str
    text_x: str
    word_y: str
    label_y: str
    is_self: bool


@dataclass(frozen=True)
class Line:
    path: str
    word: object
    dashed: bool


@dataclass(frozen=True)
class Drawing:
    """Boxes and lines, and how much room they take."""

    boxes: list[Box]
    lines: list[Line]
    width: str
    height: str


def draw(graph: Graph) -> Drawing:
    """Draw a graph from left to right."""
    columns = sorted({node.column for node in graph.nodes.values()})
    stacks = {column: [n for n in graph.nodes.values() if n.column == column] for column in columns}
    tallest = max(len(stack) for stack in stacks.values())
    height = tallest * (HIGH + APART) - APART
    places: dict[str, tuple[int, int]] = {}
    for index, column in enumerate(columns):
        used = len(stacks[column]) * (HIGH + APART) - APART
        for row, node in enumerate(stacks[column]):
            places[node.key] = (EDGE + index * (WIDE + GAP), EDGE + (height - used) // 2 + row * (HIGH + APART))
    boxes = [_box(node, *places[node.key]) for node in graph.nodes.values()]
    lines = [_line(places[a], places[b], how) for a, b, how in graph.edges if a in places and b in places]
    width = len(columns) * (WIDE + GAP) - GAP + 2 * EDGE
    return Drawing(boxes, lines, str(width), str(height + 2 * EDGE))


def _box(node: Node, x: int, y: int) -> Box:
    short = node.label if len(node.label) <= MAX_SIGNS else f"{node.label[: MAX_SIGNS - 1]}…"
    at = {"x": str(x), "y": str(y), "text_x": str(x + 10), "word_y": str(y + 18), "label_y": str(y + 36)}
    return Box(node, KIND_LABELS[node.kind], short, is_self=node.column == 0, **at)


def _line(begin: tuple[int, int], end: tuple[int, int], how: str) -> Line:
    x1, y1 = begin[0] + WIDE, begin[1] + HIGH // 2
    x2, y2 = end[0], end[1] + HIGH // 2
    bend = max((x2 - x1) // 2, GAP // 2)
    path = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    return Line(path, HOW_LABELS[how], how in ("fine_tuned", "distilled"))
