"""What the page of a version says about its content: bars by class and split, sizes, leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from datasets.formats.figures import IMAGE_PX, OBJECT_PX
from datasets.formats.neutral import NO_SPLIT
from datasets.models import DatasetVersion
from datasets.services import figures


@dataclass(frozen=True, slots=True)
class ClassBar:
    """A class with its objects, in all and by split, in the order of the version's splits."""

    id: int
    name: str
    color: str
    total: int
    by_split: list[int]


@dataclass(frozen=True, slots=True)
class SizeBar:
    label: str
    count: int


def shown(version: DatasetVersion) -> dict[str, Any]:
    """What the templates need of a version's figures; "counting" where a worker is still at it."""
    counted = figures.for_version(version)
    if counted is None:
        return {"counting": version.image_count > figures.AT_ONCE}
    bars = _classes(version, counted["objects"])
    return {
        "splits": [(name or NO_SPLIT, name or _("no split"), count) for name, count in version.splits.items()],
        "class_bars": sorted(bars, key=lambda bar: -bar.total),
        "most_objects": max((bar.total for bar in bars), default=1) or 1,
        "image_bars": _sizes(counted["image_px"], IMAGE_PX),
        "object_bars": _sizes(counted["object_px"], OBJECT_PX),
        "leaks": counted["leaks"],
        "twins": counted["twins"],
        "unannotated": sum(counted["unannotated"].values()) if version.annotated else 0,
        "empty": sum(counted["empty"].values()),
    }


def _classes(version: DatasetVersion, objects: dict[str, dict[str, int]]) -> list[ClassBar]:
    bars = []
    for item in version.colored_classes:
        by_split = [objects.get(split, {}).get(str(item["id"]), 0) for split in version.splits]
        bars.append(ClassBar(item["id"], item["name"], item["color"], sum(by_split), by_split))
    return bars


def _sizes(counts: list[int], ends: tuple[int, ...]) -> list[SizeBar]:
    """Return bars from the first to the last non-empty one; none without measured objects."""
    names = [f"≤ {end} px" for end in ends] + [f"> {ends[-1]} px"]
    filled = [index for index, count in enumerate(counts) if count]
    if not filled:
        return []
    bar_range = range(filled[0], filled[-1] + 1)
    return [SizeBar(names[index], counts[index]) for index in bar_range]
