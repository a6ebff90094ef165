"""A detector's outputs as boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.kit.contracts.schema import BOX, CLASS, SHARE, an_object
from inference.kit.contracts.served_task import SHAPES, Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import CHAIN, CLASS_SCORE, DETECTED, DETECTED_SCORE, DecodeSpec, ModelSpec
from inference.kit.task_kinds.detection import layouts
from training.presets.tiling.boxes import Parts
from training.presets.tiling.masks import Patch

OF_CHAIN = (DETECTED, DETECTED_SCORE, CLASS_SCORE)
LOWEST_SCORE, MAX_BOXES_PER_TILE = 0.01, 300  # what of a tile is put together with the others


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image its boxes in the pixels of the image, best first."""
    limits = limits_of(spec.decode, requested)
    answers = []
    for row, placement in enumerate(placements):
        boxes = detections(spec, outputs, row, placement, limits)
        answers.append(
            [
                {
                    **spec.class_at(c),
                    "score": round(float(s), 6),
                    "box": [round(float(v), 2) for v in b],
                    **of_chain(spec, outputs, row, int(index)),
                }
                for b, s, c, index in zip(boxes.boxes, boxes.scores, boxes.classes, boxes.places, strict=True)
            ]
        )
    return answers


def of_chain(spec: ModelSpec, outputs: Arrays, row: int, index: int) -> dict[str, Any]:
    """Return the class and score of each of the two parts of a chain for an object; empty for other models."""
    if spec.graph is None or spec.graph.kind != CHAIN:
        return {}
    kind, sure, class_score = (outputs[spec.outputs[role]][row, index] for role in OF_CHAIN)
    first = spec.graph.parts[0].spec
    return {
        "detected": {**first.class_at(int(kind)), "score": round(float(sure), 6)},
        "class_score": None if np.isnan(class_score) else round(float(class_score), 6),
    }


def detections(
    spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement, limits: DecodeSpec
) -> decode.Detections:
    """The boxes of one picture of a batch."""
    boxes, scores = layouts.boxes_and_scores(spec, outputs, row)
    return decode.detections(
        boxes,
        scores,
        placement,
        score_threshold=limits.score_threshold,
        iou_threshold=limits.iou_threshold,
        max_detections=limits.max_detections,
    )


class OfTiles:
    """The boxes of the tiles of a picture as those of a model that has seen all of it; each object has one."""

    def __init__(self, spec: ModelSpec, size: tuple[int, int]) -> None:
        if spec.input is None:
            raise ValueError("a model without a described input has no tiles")
        self.spec, self.size = spec, size
        self.parts = Parts(size, (spec.input.width, spec.input.height))
        self.limits = DecodeSpec(LOWEST_SCORE, spec.decode.iou_threshold, MAX_BOXES_PER_TILE)

    def add(self, outputs: Arrays, placements: Sequence[decode.Placement]) -> None:
        for row, placement in enumerate(placements):
            boxes = detections(self.spec, outputs, row, placement, self.limits)
            corner = (-placement.offset_x, -placement.offset_y)
            masks = self.masks(outputs, row, corner, boxes)
            self.parts.add(corner, boxes.boxes, boxes.scores, boxes.classes, masks)

    def masks(
        self, outputs: Arrays, row: int, corner: tuple[float, float], boxes: decode.Detections
    ) -> Sequence[Patch]:
        """Return the mask of each object of the tile at `corner`; plain boxes have none."""
        return ()

    def result(self) -> tuple[ModelSpec, Arrays, decode.Placement]:
        joined = self.parts.joined(len(self.spec.classes))
        roles = (self.spec.outputs[role] for role in ANSWER.outputs)
        named = dict(zip(roles, (joined.boxes[None], joined.scores[None]), strict=True))
        return self.spec, named, decode.Placement(*self.size, 1.0, 1.0)


def limits_of(model: DecodeSpec, requested: Requested) -> DecodeSpec:
    """The model's limits, and over them those of a request."""
    return DecodeSpec(
        model.score_threshold if requested.score_threshold is None else requested.score_threshold,
        model.iou_threshold if requested.iou_threshold is None else requested.iou_threshold,
        min(model.max_detections, requested.max_detections or model.max_detections),
    )


ITEM = an_object(**CLASS, score=SHARE, box=BOX)
ITEM_OF_CHAIN = an_object(
    **CLASS,
    score={**SHARE, "description": "The detector's, times class_score where there is one."},
    box=BOX,
    detected=an_object(**CLASS, score=SHARE),
    class_score={
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": 1,
        "description": "How sure the second model is of the class; null of an object that it does not look at.",
    },
)
ANSWER = Answer(
    outputs=layouts.OWN,
    read=read,
    item=ITEM,
    draft=SHAPES,
    options=("score_threshold", "iou_threshold", "max_detections"),
    slow=True,
    joining=OfTiles,
    layouts=layouts.LAYOUTS,
    detect=detections,
    elsewhere=True,
    boxes=True,
    item_of_chain=ITEM_OF_CHAIN,
)
