"""A keypoint finder's output as the named points of one object.

The points of all classes stand one behind the other in the output; model.json says with each class what its own are
called (`keypoints`) and which belong together (`skeleton`: pairs of places from 1, as COCO has them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.contracts.schema import CLASS, NUMBER, SHARE, TEXT, a_list, an_object
from inference.kit.contracts.served_task import SHAPES, Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec


@dataclass(frozen=True)
class Skeleton:
    """The points of one class: their names, their links, and their positions in the output."""

    names: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    places: slice


def skeletons(spec: ModelSpec, count: int) -> list[Skeleton]:
    """The skeleton of each class of the model, whose output has `count` points.

    Where model.json names other than `count` points, every class has all of them, called by their numbers.
    """
    skeletons: list[Skeleton] = []
    first = 0
    for entry in spec.raw.get("classes", ()):
        names = tuple(str(name) for name in _list(entry, "keypoints"))
        links = tuple(
            (int(link[0]), int(link[1])) for link in _list(entry, "skeleton") if _is_link(link, limit=len(names))
        )
        skeletons.append(Skeleton(names, links, slice(first, first + len(names))))
        first += len(names)
    if first == count and len(skeletons) == len(spec.classes):
        return skeletons
    numbers = tuple(str(number) for number in range(1, count + 1))
    return [Skeleton(numbers, (), slice(0, count)) for _class in spec.classes]


def _list(entry: object, name: str) -> list[Any]:
    value = entry.get(name) if isinstance(entry, Mapping) else None
    return value if isinstance(value, list) else []


def _is_link(link: object, *, limit: int) -> bool:
    is_pair = isinstance(link, list) and len(link) == 2 and all(isinstance(end, int) for end in link)
    return is_pair and all(1 <= end <= limit for end in link)  # type: ignore[attr-defined]  # a list, as just checked


@dataclass(frozen=True)
class Found:
    """One look at a picture: points [K, 3] as x, y in its pixels and score, and how likely each class is [C]."""

    points: NDArray[np.float32]
    classes: NDArray[np.float32]


def read_points(spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement) -> Found:
    """Read a row of a batch, in the pixels of its image."""
    points = np.array(outputs[spec.outputs["points"]][row], np.float32)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"an output of shape {points.shape} is no list of points")
    points[:, :2] = placement.to_points(points[:, :2])
    return Found(points, np.asarray(outputs[spec.outputs["classes"]][row], np.float32))


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image its object: the class, and the position of each of its points.

    Points that are less sure than `score_threshold` are left out.
    """
    lowest = requested.score_threshold or 0.0
    answers = []
    for row, placement in enumerate(placements):
        result = read_points(spec, outputs, row, placement)
        kind = int(result.classes[: len(spec.classes)].argmax())
        skeleton = skeletons(spec, len(result.points))[kind]
        points = result.points[skeleton.places]
        score = float(result.classes[kind]) * float(points[:, 2].mean() if len(points) else 0.0)
        named = [
            {"name": name, "x": round(float(x), 2), "y": round(float(y), 2), "score": round(float(sure), 4)}
            for name, (x, y, sure) in zip(skeleton.names, points, strict=True)
            if sure >= lowest
        ]
        links = [[skeleton.names[start - 1], skeleton.names[end - 1]] for start, end in skeleton.links]
        answers.append([{**spec.class_at(kind), "score": round(score, 6), "keypoints": named, "skeleton": links}])
    return answers


ITEM = an_object(
    **CLASS,
    score=SHARE,
    keypoints=a_list(an_object(name=TEXT, x=NUMBER, y=NUMBER, score=NUMBER)),
    skeleton=a_list(a_list(TEXT), "Pairs of names that belong together."),
)
ANSWER = Answer(
    outputs=("points", "classes"),
    read=read,
    item=ITEM,
    draft=SHAPES,
    options=("score_threshold", "region"),
    regions=True,
)
