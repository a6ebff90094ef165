"""What is known of an image beside its truth: its split, how bright it is, what its annotations say of it.

Kept with each judged image, so that figures can be had of parts of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PIL import Image, ImageStat

from inference.kit.samples.ground_truth import Truth

MAX_NAMES, MAX_VALUES, LONGEST = 20, 12, 40
#: Fields of an image in COCO's format that say what file it is, not what it shows.
FILED = {
    "id", "file_name", "width", "height", "split", "license", "coco_url", "flickr_url", "date_captured", "sha256",
    "annotated",
}  # fmt: skip
OWN = {"shape", "rings", "score"}  # attributes by which the platform remembers how an object was drawn
Marks = dict[str, list[str]]


def light(image: Image.Image) -> float:
    """The mean brightness of an image, from 0 (black) to 255 (white); of a smaller copy where it is large."""
    small = image.convert("L") if image.width * image.height < 1 << 16 else image.reduce(_times(image)).convert("L")
    return round(float(ImageStat.Stat(small).mean[0]), 2)


def _times(image: Image.Image) -> int:
    return max(1, min(image.width, image.height) // 128)


def by_path(truth: Truth, lights: Mapping[str, float | None]) -> dict[str, dict[str, Any]]:
    """By the path of an image: `split`, `light` (None where it was not measured) and `marks`."""
    marks = _marks(truth)
    return {
        sample.path: {"split": sample.split, "light": lights.get(sample.path), "marks": marks.get(sample.id, {})}
        for sample in truth.samples
    }


def _marks(truth: Truth) -> dict[int, Marks]:
    """By the id of an image: names and values of the attributes of its file and its objects.

    A name with more than a dozen values (a number, a time) names no parts of a dataset, and is left out.
    """
    marks: dict[int, dict[str, set[str]]] = {}
    coco = truth.coco or {}
    for image in coco.get("images", ()):
        _add(marks, image["id"], ((name, value) for name, value in image.items() if name not in FILED))
    for annotation in coco.get("annotations", ()):
        attributes = annotation.get("attributes")
        if isinstance(attributes, dict):
            _add(
                marks, annotation["image_id"], ((name, value) for name, value in attributes.items() if name not in OWN)
            )
    values: dict[str, set[str]] = {}
    for own in marks.values():
        for name, own_values in own.items():
            values.setdefault(name, set()).update(own_values)
    names = sorted(name for name, own_values in values.items() if len(own_values) <= MAX_VALUES)[:MAX_NAMES]
    return {number: {name: sorted(own[name]) for name in names if name in own} for number, own in marks.items()}


def _add(marks: dict[int, dict[str, set[str]]], number: int, pairs: Iterable[tuple[Any, Any]]) -> None:
    own = marks.setdefault(number, {})
    for name, value in pairs:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, bool | int | str) and item != "" and isinstance(name, str):
                text = str(item).lower() if isinstance(item, bool) else str(item)
                own.setdefault(name[:LONGEST], set()).add(text[:LONGEST])
