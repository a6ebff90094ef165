"""Compare what a format wrote of an object with what is stored, field by field. Pure.

The notes of an archive's README come from here and nowhere else: "Nothing was lost" means that no comparison found a
difference. What is compared is read back from the text that was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from datasets.formats.coco_file import SHAPE_FIELDS
from datasets.formats.exports.export import ATTRIBUTES, Drawn, foreign_attributes
from datasets.shapes import geometry
from datasets.shapes.geometry import Box, Rings

OUTLINE_LOST = "an outline, written as the box around it"
HOLES_LOST = "a mask, written as its outline; its holes are filled"
JOINED = "an object in several parts, written as one outline whose parts a line joins"
ROUNDED = "a box rounded to whole pixels"
CUT = "an object cut at the edge of its image"
AREA_LOST = "an object with a stated area, which is not that of the shape written"
BOX_LOST = "an object with a stated box, which is not that of the outline written"
IMAGE_FIELDS = "an image with “{name}”, which is not written"
OBJECT_FIELDS = "an object with “{name}”, which is not written"
CLASS_FIELDS = "a class with “{name}”, which is not written"
DATASET_FIELDS = "“{name}” of the dataset, which is not written"
CLASS_UNUSED = "a class without an object, which is not named"
CLASS_ID = "a class that gets another id"
EXACT_PX = 1e-3  # numbers are written with 8 digits
SAME_AREA = 0.01  # relative: area of pixels or of an outline
OWN_INFO = ("description", "version")  # the platform writes these itself
_OBJECT = {*SHAPE_FIELDS, "kind"}
_CLASS = {"id", "name"}


@dataclass(frozen=True, slots=True)
class WrittenObject:
    """What a reader of the format gets of an object.

    Args:
        outlines: polygons in pixels; [] where the format has boxes only.
        box: in pixels; None where the format has outlines only.
        attributes: names of attributes that were written.
    """

    outlines: Rings = ()
    box: Box | None = None
    attributes: frozenset[str] = field(default_factory=frozenset)


def object_losses(entry: Mapping[str, Any], rings: Rings, written: WrittenObject, image: Drawn) -> Iterator[str]:
    """Yield what `written` lacks of a stored annotation with the outlines `rings`."""
    masked = isinstance(entry["segmentation"], dict)
    boxed = not masked and len(rings) == 1 and geometry.is_box(rings[0])
    stored = Box(*entry["bbox"])
    if written.box is not None:
        if not boxed:
            yield OUTLINE_LOST
        clipped = geometry.clip_box(stored, image.width, image.height)
        if not _is_same_box(clipped, stored, EXACT_PX):
            yield CUT
        if not _is_same_box(written.box, clipped, EXACT_PX):
            yield ROUNDED
    else:
        if masked and not _is_near(geometry.area(rings), entry["area"]):
            yield HOLES_LOST
        if len(rings) > len(written.outlines):
            yield JOINED
        if not _is_near(geometry.area(written.outlines), geometry.area(rings)):
            yield CUT
        elif not boxed and not _is_same_box(geometry.extents(rings), stored, 1.0):
            yield BOX_LOST
    shaped = stored.width * stored.height if boxed else geometry.area(rings)
    if not masked and not _is_near(shaped, entry["area"]):
        yield AREA_LOST
    if foreign_attributes(entry.get("attributes") or {}) - written.attributes:
        yield ATTRIBUTES
    for name in sorted(entry.keys() - _OBJECT):
        if _says_something(entry[name]):
            yield OBJECT_FIELDS.format(name=name)


def image_losses(image: Drawn) -> Iterator[str]:
    """Fields of the image beyond those that every format has."""
    for name in sorted(image.extra):
        if _says_something(image.extra[name]):
            yield IMAGE_FIELDS.format(name=name)


def head_losses(classes: list[dict[str, Any]], head: Mapping[str, Any], ids: Mapping[int, int]) -> Iterator[str]:
    """Yield what is lost of the dataset's and its classes' fields beyond names, and classes without a name.

    Args:
        head: "info" and "licenses" of the file the dataset came with.
        ids: class id → the id that a reader of the format gives the class; without classes that are not written.
    """
    for item in classes:
        for name in sorted(item.keys() - _CLASS):
            if _says_something(item[name]):
                yield CLASS_FIELDS.format(name=name)
        if item["id"] not in ids:
            yield CLASS_UNUSED
        elif ids[item["id"]] != item["id"]:
            yield CLASS_ID
    for name in sorted(head):
        own = OWN_INFO if name == "info" else ()
        fields = {key: value for key, value in head[name].items() if key not in own} if own else head[name]
        if _says_something(fields):
            yield DATASET_FIELDS.format(name=name)


def _says_something(value: Any) -> bool:
    return value not in (None, "", 0, False, [], {})


def _is_near(a: float, b: float) -> bool:
    return abs(a - b) <= SAME_AREA * max(abs(a), abs(b), 1e-9)


def _is_same_box(first: Box, second: Box, px: float) -> bool:
    sides = ((first.x, second.x), (first.y, second.y), (first.x + first.width, second.x + second.width))
    return all(abs(a - b) <= px for a, b in (*sides, (first.y + first.height, second.y + second.height)))
