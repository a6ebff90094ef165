"""A detector's outputs as boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.server import decode, tiles
from inference.server.requested import Requested
from inference.server.spec import DecodeSpec, ModelSpec
from inference.task_kinds.served import Answer, Arrays

LOWEST_SCORE, MOST_OF_TILE = 0.01, 300  # what of a tile is put together with the others


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each picture its boxes in the picture's own pixels, best first."""
    limits = limits_of(spec.decode, requested)
    return [
        [
            {**spec.class_at(c), "score": round(float(s), 6), "box": [round(float(v), 2) for v in b]}
            for b, s, c in zip(boxes.boxes, boxes.scores, boxes.classes, strict=True)
        ]
        for boxes in (detections(spec, outputs, row, placement, limits) for row, placement in enumerate(placements))
    ]


def detections(
    spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement, limits: DecodeSpec
) -> decode.Detections:
    """The boxes of one picture of a batch."""
    boxes, scores = (np.asarray(outputs[spec.outputs[role]][row], np.float32) for role in ANSWER.outputs)
    return decode.detections(
        boxes,
        scores,
        placement,
        score_threshold=limits.score_threshold,
        iou_threshold=limits.iou_threshold,
        max_detections=limits.max_detections,
    )


def joined(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement]
) -> tuple[ModelSpec, Arrays, decode.Placement]:
    """The boxes of the tiles of one picture as those of a model that has seen all of it; each object has one."""
    whole = placements[0]
    size, seen = (whole.width, whole.height), spec.input
    if seen is None:
        raise ValueError("a model without a described input has no tiles")
    limits = DecodeSpec(LOWEST_SCORE, spec.decode.iou_threshold, MOST_OF_TILE)
    every = [detections(spec, outputs, row, placement, limits) for row, placement in enumerate(placements)]
    boxes, scores, classes = (
        np.concatenate([getattr(one, name) for one in every]) for name in ("boxes", "scores", "classes")
    )
    of = np.repeat(np.arange(len(every)), [len(one.boxes) for one in every])
    corners = np.array([(-one.offset_x, -one.offset_y) for one in placements], np.float32)
    rects = np.concatenate([corners, np.minimum(corners + np.array([seen.width, seen.height]), size)], 1)
    numbers = tiles.merged(boxes, scores, classes, of, rects.astype(np.float32), size)
    count = int(numbers.max()) + 1 if len(numbers) else 0
    of_all, scores_of_all = np.zeros((count, 4), np.float32), np.zeros((count, len(spec.classes)), np.float32)
    of_all[numbers] = boxes
    np.maximum.at(scores_of_all, (numbers, classes), scores)
    there = (of_all[:, 2:] > of_all[:, :2]).all(1)  # not what was seen in the grey beside a small picture
    roles = (spec.outputs[role] for role in ANSWER.outputs)
    named = dict(zip(roles, (of_all[None, there], scores_of_all[None, there]), strict=True))
    return spec, named, decode.Placement(*size, 1.0, 1.0)


def limits_of(model: DecodeSpec, requested: Requested) -> DecodeSpec:
    """The model's limits, and over them those of a request."""
    return DecodeSpec(
        model.score_threshold if requested.score_threshold is None else requested.score_threshold,
        model.iou_threshold if requested.iou_threshold is None else requested.iou_threshold,
        min(model.max_detections, requested.max_detections or model.max_detections),
    )


ANSWER = Answer(outputs=("boxes", "scores"), read=read, slow=True, joined=joined)
