"""Keypoints of a dataset version: what the points of each class are called, and where they are on each object."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import data
from .run import Refused

FIELD = "keypoints"  # of COCO's classes: names; of its objects: x, y, v for each name
SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Skeleton:
    """The points of one class. `first` is the place of its first one among the points of all classes."""

    names: tuple[str, ...]
    links: tuple[tuple[int, int], ...]  # places from 1, as COCO has them
    first: int
    mirrored: tuple[int, ...]  # which point each one is in a mirror image; empty: nobody knows

    @property
    def places(self) -> slice:
        return slice(self.first, self.first + len(self.names))


@dataclass(frozen=True)
class Object:
    """One object with points, in the pixels of its image."""

    row: int  # of its image
    kind: int  # place of its class
    box: tuple[float, float, float, float]  # x0, y0, x1, y1
    points: np.ndarray  # [K, 3]: x, y, and 0 not known, 1 hidden, 2 seen


def read(version: data.Version, pairs: str = "") -> tuple[list[Skeleton], list[Object]]:
    """Return the skeleton of each class, in the order of the version's classes, and every object with a labeled point.

    Crowds are left out. The box of an object that has none goes around its points.

    Args:
        pairs: points that change places in a mirror image beside those named left and right: "nose=tail, a=b".

    Raises:
        Refused: no class names keypoints, no object has any, or an object has more or fewer than its class names.
    """
    try:
        coco = json.loads((version.folder / "annotations.json").read_text())
    except OSError:
        coco = {"categories": [], "images": [], "annotations": []}
    skeletons = _skeletons(version, coco["categories"], pairs)
    rows = {image.path: row for row, image in enumerate(version.images)}
    row_of = {entry["id"]: rows[entry["file_name"]] for entry in coco["images"] if entry["file_name"] in rows}
    objects = []
    for shape in coco["annotations"]:
        row, kind = row_of.get(shape["image_id"]), version.class_index.get(shape["category_id"])
        if row is None or kind is None or shape.get("iscrowd") or not shape.get(FIELD):
            continue
        names, values = skeletons[kind].names, shape[FIELD]
        if len(values) != 3 * len(names):
            raise Refused(
                f"An object on {version.images[row].path} has {len(values)} numbers for the {len(names)} keypoints of "
                f"its class; {3 * len(names)} are needed. Mend the COCO file and import it again."
            )
        points = np.array(values, np.float32).reshape(-1, 3)
        if (points[:, 2] > 0).any():
            objects.append(Object(row, kind, _box(shape["bbox"], points), points))
    if not objects:
        raise Refused(
            f"{version.name or 'The dataset'} has no keypoints. Import a COCO file whose classes name keypoints and "
            "whose objects carry them."
        )
    return skeletons, objects


def _skeletons(version: data.Version, categories: Sequence[Mapping[str, Any]], pairs: str) -> list[Skeleton]:
    by_id = {int(entry["id"]): entry for entry in categories}
    skeletons: list[Skeleton] = []
    first = 0
    for label_class in version.classes:
        entry = by_id.get(int(label_class["id"]), {})
        names = tuple(str(name) for name in entry.get(FIELD) or ())
        links = tuple((int(a), int(b)) for a, b in entry.get("skeleton") or ())
        fitting = tuple(link for link in links if all(1 <= end <= len(names) for end in link))
        skeletons.append(Skeleton(names, fitting, first, mirrored(names, pairs)))
        first += len(names)
    return skeletons


def mirrored(names: Sequence[str], pairs: str = "") -> tuple[int, ...]:
    """Return the index of each name in a mirror image: left ↔ right, and `pairs`; empty if none changes.

    Raises:
        Refused: `pairs` is not written as "a=b, c=d".
    """
    turned: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in pairs.split(","))):
        first, sign, other = (part.strip() for part in pair.partition("="))
        if not (first and sign and other):
            raise Refused(f"pairs names points that change places as “nose=tail, a=b”, not as “{pair}”.")
        turned |= {first: other, other: first}
    places = {name: index for index, name in enumerate(names)}
    order = [places.get(turned.get(name) or _other_side(name), index) for index, name in enumerate(names)]
    complete = sorted(order) == list(range(len(names)))
    return tuple(order) if complete and order != list(range(len(names))) else ()


def _other_side(name: str) -> str:
    def turn(match: re.Match[str]) -> str:
        word = SIDES[match[0].lower()]
        return word.capitalize() if match[0][0].isupper() else word

    return re.sub("left|right", turn, name, flags=re.IGNORECASE)


def _box(bbox: Sequence[float], points: np.ndarray) -> tuple[float, float, float, float]:
    x, y, w, h = (float(value) for value in bbox)
    if w > 0 and h > 0:
        return x, y, x + w, y + h
    labeled = points[points[:, 2] > 0, :2]
    (x0, y0), (x1, y1) = labeled.min(0), labeled.max(0)
    return float(x0) - 1, float(y0) - 1, float(x1) + 1, float(y1) + 1
