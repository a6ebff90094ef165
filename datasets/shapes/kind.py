"""What a kind of shape is: how it is checked, measured, kept in COCO and drawn on a thumbnail. No database, no I/O.

A shape's points are *rings*, see `geometry`. What they mean is the kind's own: corners of an outline for a box or a
polygon, one pair for a point, whatever another kind needs. Tables, the API and the annotator only hand them on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from aiplatform.lib.wording import Message, message
from datasets.shapes import geometry
from datasets.shapes.geometry import Box, Rings

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a shape is refused: a stable code and a sentence for people.

    Args:
        says: the sentence as code and facts; the words of a kind are registered with `wording.register`.
        ring: index of the part it is about; None when it is about the shape as a whole.
        value_index: of the number within that part.
    """

    code: str
    says: Message
    ring: int | None = 0
    value_index: int | None = None

    @property
    def text(self) -> str:
        """The sentence in the language that is active now."""
        return str(self.says)

    @property
    def path(self) -> str:
        """Where it is below the rings: "", "[0]" or "[0][4]"."""
        return "".join(f"[{index}]" for index in (self.ring, self.value_index) if index is not None)


@dataclass(frozen=True, slots=True)
class CocoItem:
    """An annotation of a COCO file whose `bbox` and `area` were found to be numbers.

    Args:
        bbox: x, y, width, height; None or [] when the file is silent.
        image: path of its image, for sentences; "" where that is not known.
        raw: the whole object, for kinds that COCO keeps in fields of their own.
    """

    segmentation: Any
    bbox: list[float] | None
    area: float | None
    attributes: Mapping[str, Any]
    image: str
    raw: Mapping[str, Any]


class Reporter(Protocol):
    """Takes what is wrong with an annotation; `place` is a field of it, with indices ("segmentation[0]")."""

    def refuse(self, field_path: str, code: str, says: Message) -> None:
        """Make the file unfit."""

    def drop(self, field_path: str, code: str, says: Message) -> None:
        """Leave out this annotation, or a part of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A shape read from COCO, as a dataset version keeps it."""

    kind: str
    bbox: tuple[float, float, float, float]
    segmentation: list[list[float]] | dict[str, Any]
    area: float
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """A shape cut at the border of its image, and how the report names that."""

    bbox: tuple[float, float, float, float]
    segmentation: list[list[float]]
    area: float
    code: str
    says: Message


class ShapeKind:
    """A kind of shape. A subclass per kind, one instance of it in the registry.

    The methods here suit a kind whose rings lie in COCO's `attributes`, as {"shape": name, "rings": […]}, with the
    area and the outlines it says; a new kind replaces what does not suit it.
    """

    name: ClassVar[str]  # in rows, in the API and in COCO's attributes.shape; at most 20 characters
    label: ClassVar[StrPromise | str]
    drawable: ClassVar[bool] = True  # people draw it: annotation/static/annotation/shapes/<tool>.js says how
    covers_area: ClassVar[bool] = True  # False for points and lines: area 0 is right for them
    # What the annotator shows. `tool` names the act, its button and its module; `key` is its default key, `hint` its
    # line in the list of keys, `icon` a symbol of aiplatform/static/base/icons.svg.
    tool: ClassVar[str] = ""
    icon: ClassVar[str] = ""
    key: ClassVar[str] = ""
    hint: ClassVar[StrPromise | str] = ""

    # --- a shape as it is drawn and stored

    def flaw(self, rings: object, *, width: float, height: float, crossings: bool = True) -> Flaw | None:
        """What is wrong with `rings` in an image of `width` × `height` pixels, or None. Takes whatever JSON held.

        Args:
            crossings: False skips dear checks, for shapes that passed them when they were saved.
        """
        raise NotImplementedError

    def cleaned(self, rings: Rings) -> list[list[float]]:
        """`rings` without a flaw, as they are stored: four decimals."""
        return [[round(float(value), 4) for value in ring] for ring in rings]

    def area(self, rings: Rings) -> float:
        """Covered px²."""
        return geometry.area(self.outlines(rings))

    def extents(self, rings: Rings) -> Box:
        """The smallest box around the shape; for a point and an upright line one side is 0."""
        return geometry.extents(self.outlines(rings) or rings)

    def outlines(self, rings: Rings) -> Rings:
        """Polygons that stand for the shape where polygons are all there is; none for what covers no area."""
        return rings if self.covers_area else []

    # --- COCO

    def coco(self, rings: Rings, *, width: int, height: int) -> dict[str, Any]:
        """The fields of a COCO annotation that are the shape's own.

        Points as they are; area and box to six decimals, beyond which floats only show their seams.
        """
        entry: dict[str, Any] = {
            "segmentation": self.outlines(rings),
            "area": round(self.area(rings), 6),
            "bbox": [round(value, 6) for value in geometry.clip_box(self.extents(rings), width, height)],
            "iscrowd": 0,
        }
        attributes = self.attributes(rings)
        return entry | {"attributes": attributes} if attributes else entry

    def attributes(self, rings: Rings) -> dict[str, Any]:
        """Return the COCO attributes from which a reader makes this kind of shape again."""
        return {"shape": self.name, "rings": [list(ring) for ring in rings]}

    def claims(self, item: CocoItem) -> bool:
        """Whether a COCO annotation is of this kind."""
        return item.attributes.get("shape") == self.name and "rings" in item.attributes

    def read(self, item: CocoItem, report: Reporter) -> Reading | None:
        """Return a COCO annotation as a shape; None if it was refused or left out, and reported."""
        rings = item.attributes["rings"]
        flaw = self.flaw(rings, width=math.inf, height=math.inf)
        if flaw is not None:
            text = message("report.flawed_shape", image=item.image, flaw=flaw.says)
            report.drop(f"attributes.rings{flaw.path}", flaw.code, text)
            return None
        cleaned = self.cleaned(rings)
        outlines = [list(ring) for ring in self.outlines(cleaned)]
        return Reading(self.name, self.extents(cleaned), outlines, self.area(cleaned), dict(item.attributes))

    # --- a shape of a dataset version

    def meets(self, bbox: tuple[float, float, float, float], width: float, height: float) -> bool:
        """Return whether any part is on the image; for shapes without area the border counts too."""
        x, y, across, down = bbox
        if self.covers_area:
            return x < width and y < height and x + across > 0 and y + down > 0
        return x <= width and y <= height and x + across >= 0 and y + down >= 0

    def cut(self, bbox: tuple[float, float, float, float], width: float, height: float) -> Cut | None:
        """The part on the image of a shape that sticks out; None leaves it as it came."""
        return None

    def drawn(self, shape: Mapping[str, Any]) -> list[list[float]]:
        """Lists of points the gallery keeps of a version's shape, one per part; `svg` draws each."""
        rings: list[list[float]] = shape["attributes"]["rings"]
        return rings

    def editable(self, shape: Mapping[str, Any]) -> tuple[str, list[list[float]]]:
        """Name of a kind people draw, and the rings under which they go on with a version's shape."""
        return self.name, self.drawn(shape)

    def svg(self, points: list[float]) -> str:
        """Path data of one part of `drawn`; by default a closed outline."""
        pairs = " ".join(f"{x:g},{y:g}" for x, y in zip(points[::2], points[1::2], strict=False))
        return f"M{pairs}Z"


def corners_of(bbox: tuple[float, float, float, float] | list[float]) -> list[float]:
    """A box as the gallery keeps it: left, top, right, bottom."""
    x, y, width, height = bbox
    return [x, y, x + width, y + height]


def box_path(points: list[float]) -> str:
    """Path data of left, top, right, bottom."""
    x0, y0, x1, y1 = points
    return f"M{x0:g},{y0:g}H{x1:g}V{y1:g}H{x0:g}Z"
