"""The kinds of shapes there are: one file each, one registry for reading, drawing, checking and exporting them.

The registry is here and not in `annotation`, because datasets read, cut and show shapes too and know nothing of the
apps above them; `annotation` draws and stores with the same objects. A new kind is a file here, its line below and a
module in `annotation/static/annotation/shapes/`; aiplatform/docs/subsystems/annotation.md has the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aiplatform.lib.registry import Registry
from datasets.shapes.box import BOX
from datasets.shapes.kind import CocoItem, ShapeKind
from datasets.shapes.mask import MASK
from datasets.shapes.polygon import POLYGON

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

__all__ = ["DEFAULT", "KINDS", "ShapeKind", "choices", "drawable", "find", "get", "of_coco", "of_stored", "register"]

KINDS: Registry[ShapeKind] = Registry("shape kind")
KINDS.register(BOX, POLYGON, MASK)
DEFAULT = POLYGON  # for a class without a kind of its own

register = KINDS.register
get = KINDS.get  # KeyError for an unknown name


def find(name: object) -> ShapeKind | None:
    """The kind of that name, or None; takes whatever JSON held."""
    return KINDS.find(name) if isinstance(name, str) else None


def drawable() -> list[ShapeKind]:
    """The kinds people draw in the annotator, in the order of its buttons."""
    return [kind for kind in KINDS if kind.drawable]


def choices() -> list[tuple[str, StrPromise | str]]:
    """(name, label) of what people draw, for fields of models and forms."""
    return [(kind.name, kind.label) for kind in drawable()]


def of_coco(item: CocoItem) -> ShapeKind:
    """The kind of a COCO annotation: the one it names, else the first that claims it, else the default."""
    named = find(item.attributes.get("shape"))
    return next((kind for kind in (named, *KINDS) if kind and kind.claims(item)), DEFAULT)


def of_stored(entry: Mapping[str, Any]) -> ShapeKind:
    """The kind of an annotation as a version's annotations.json has it."""
    return of_coco(
        CocoItem(entry["segmentation"], entry["bbox"], entry["area"], entry.get("attributes") or {}, "", entry)
    )
