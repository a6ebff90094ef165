"""Colors of classes. A dataset version stores one for each class; what was made of the version draws with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

#: The default colors, in the order of the class list: `--chart-1` to `--chart-16` of static/base/tokens.css.
PALETTE = (
    "#4353d6", "#0f8f86", "#d0741b", "#b8388a", "#5b8c1a", "#8757d6", "#2584c6", "#a3641f",
    "#e6194b", "#2e9e3e", "#d62bcd", "#808000", "#a88400", "#e0503f", "#008a98", "#9c1f4a",
)  # fmt: skip
COLOR = re.compile(r"#[0-9a-f]{6}\Z")
Class = Mapping[str, Any]  # "id", "name"


def rgb_of(color: str) -> tuple[int, int, int]:
    """Return red, green and blue of a color such as #1c7ed6."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def default_at(index: int) -> str:
    """Return the default color of the class at `index` of its list, from 0."""
    return PALETTE[index % len(PALETTE)]


def unused(used: Collection[str], index: int) -> str:
    """Return a color for a class at `index` that is not in `used`, as long as there is one."""
    return next((color for color in (default_at(index), *PALETTE) if color not in used), default_at(index))


def complete(classes: Sequence[Class], stored: Mapping[str, str]) -> dict[int, str]:
    """Return the color of each class by its id: the stored one, else the default by its place."""
    return {item["id"]: stored.get(str(item["id"])) or default_at(index) for index, item in enumerate(classes)}


def inherit(classes: Sequence[Class], earlier: Iterable[Class]) -> dict[str, str]:
    """Return colors to store for `classes`, which keep those that they had; new ones get unused colors.

    Args:
        earlier: classes with "color". A class is the same if it has the same name, or the same id and a new name.
    """
    rows = list(earlier)
    names = {item["name"] for item in classes}
    by_name = {row["name"]: row["color"] for row in rows}
    renamed = {row["id"]: row["color"] for row in rows if row["name"] not in names}
    colors = {item["id"]: by_name.get(item["name"]) or renamed.get(item["id"], "") for item in classes}
    used = set(colors.values())
    for index, item in enumerate(classes):
        if not colors[item["id"]]:
            colors[item["id"]] = unused(used, index)
            used.add(colors[item["id"]])
    return {str(number): color for number, color in colors.items()}
