"""A detector's outputs as boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.server import decode
from inference.server.requested import Requested
from inference.server.spec import DecodeSpec, ModelSpec
from inference.task_kinds.served import Answer, Arrays


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


def limits_of(model: DecodeSpec, requested: Requested) -> DecodeSpec:
    """The model's limits, and over them those of a request."""
    return DecodeSpec(
        model.score_threshold if requested.score_threshold is None else requested.score_threshold,
        model.iou_threshold if requested.iou_threshold is None else requested.iou_threshold,
        min(model.max_detections, requested.max_detections or model.max_detections),
    )


ANSWER = Answer(outputs=("boxes", "scores"), read=read, slow=True)
