"""A small drawing of the steps of a pipeline, by the server: columns by the longest way, links between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.pipelines import graph, kinds

COLUMN_PX, ROW_PX = 84, 68
ICON_PX, TOP_PX = 28, 4
LINE_PX = 14  # of the label
MAX_LABEL_LENGTH = 13


@dataclass(frozen=True)
class Node:
    """A step: the corner of its icon, the middle of its label, and the lines of the label."""

    x: int
    y: int
    middle: int
    icon: str
    lines: Sequence[tuple[int, str]]


@dataclass(frozen=True)
class Sketch:
    """What `pipelines/_sketch.html` draws; `links` are SVG paths."""

    width: int
    height: int
    nodes: Sequence[Node]
    links: Sequence[str]


def of_spec(content: Mapping[str, Any]) -> Sketch:
    """Return the drawing of a specification."""
    spec = graph.parse(content)
    depths: dict[str, int] = {}
    columns: list[list[str]] = []
    for key in spec.order():
        depths[key] = max((depths[source] + 1 for source in spec.steps[key].sources), default=0)
        columns.extend([] for _missing in range(depths[key] + 1 - len(columns)))
        columns[depths[key]].append(key)
    rows = max((len(keys) for keys in columns), default=1)
    corners: dict[str, tuple[int, int]] = {}
    for column, keys in enumerate(columns):
        first = (rows - len(keys)) * ROW_PX // 2
        for index, key in enumerate(keys):
            corners[key] = (column * COLUMN_PX + (COLUMN_PX - ICON_PX) // 2, TOP_PX + first + index * ROW_PX)
    links = [
        _link(corners[source], corners[key])
        for key in spec.order()
        for source in spec.steps[key].sources
        if not _is_implied(spec, source, key)
    ]
    nodes = [_node(spec.steps[key].kind, corner) for key, corner in corners.items()]
    return Sketch(max(1, len(columns)) * COLUMN_PX, rows * ROW_PX, nodes, links)


def _is_implied(spec: graph.Spec, source: str, key: str) -> bool:
    """Whether a longer way leads from one step to the other: its link would cross the steps between."""
    return any(other != source and source in _before(spec, other) for other in spec.steps[key].sources)


def _before(spec: graph.Spec, key: str) -> set[str]:
    earlier, open_ = set[str](), list(spec.steps[key].sources)
    while open_:
        if (name := open_.pop()) not in earlier:
            earlier.add(name)
            open_ += spec.steps[name].sources
    return earlier


def _link(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + ICON_PX, start[1] + ICON_PX // 2, end[0], end[1] + ICON_PX // 2
    bend = (x2 - x1) // 2
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _node(kind: str, corner: tuple[int, int]) -> Node:
    step_kind = kinds.KINDS.find(kind)
    x, y = corner
    below = y + ICON_PX + LINE_PX
    lines = [(below + number * LINE_PX, line) for number, line in enumerate(_wrap(kinds.label_of(kind)))]
    return Node(x, y, x + ICON_PX // 2, step_kind.icon if step_kind else "tasks", lines)


def _wrap(label: str) -> list[str]:
    """Return a label on one line, or on two where it is long."""
    first, _space, rest = label.partition(" ")
    return [first, rest] if rest and len(label) > MAX_LABEL_LENGTH else [label]
