"""Options of a prediction request in addition to the image: thresholds and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from inference.kit.model_io.refusals import BadRequest


@dataclass(frozen=True)
class Requested:
    """Options of a `predict` request; None: as the model says."""

    score_threshold: float | None = None
    iou_threshold: float | None = None
    max_detections: int | None = None
    top_k: int = 5
    neighbours: int = 5
    region: tuple[float, float, float, float] | None = None  # the part of the picture to look at: x1 y1 x2 y2

    @classmethod
    def from_query(cls, values: Mapping[str, str]) -> Self:
        """Read the query parameters of `predict`; an empty one counts as not given.

        Raises:
            BadRequest: an unknown name, with the known ones; a value that is not a number or out of range.
        """
        names = [field.name for field in fields(cls)]
        if unknown := [name for name in values if name not in names]:
            raise BadRequest(f"There is no parameter {unknown[0][:50]} here. Known: {', '.join(names)}.")
        return cls.from_values({name: value for name, value in values.items() if value})

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Read the parameters of an Open Inference Protocol request.

        Raises:
            BadRequest: a value is not a number or out of range; names it.
        """
        limit, top = _number(values, "max_detections", 1, 10_000), _number(values, "top_k", 0, 1000)
        near = _number(values, "neighbours", 0, 1000)
        return cls(
            score_threshold=_number(values, "score_threshold", 0, 1),
            iou_threshold=_number(values, "iou_threshold", 0, 1),
            max_detections=None if limit is None else int(limit),
            top_k=5 if top is None else int(top),
            neighbours=5 if near is None else int(near),
            region=_region(values),
        )


def _region(values: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    if "region" not in values:
        return None
    sides = values["region"]
    sides = sides.split(",") if isinstance(sides, str) else sides
    try:
        x1, y1, x2, y2 = (float(value) for value in sides)
    except (TypeError, ValueError):
        x1 = y1 = x2 = y2 = float("nan")
    if not (-1e6 < x1 < x2 < 1e6 and -1e6 < y1 < y2 < 1e6):
        raise BadRequest("region must be four numbers, x1,y1,x2,y2 in pixels of the picture, with x1 < x2 and y1 < y2.")
    return x1, y1, x2, y2


def _number(values: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    if name not in values:
        return None
    try:
        number = float(values[name])
    except (TypeError, ValueError):
        number = float("nan")
    if not low <= number <= high:
        raise BadRequest(f"{name} must be a number from {low} to {high}.")
    return number
