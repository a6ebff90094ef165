"""An instance segmenter's outputs as objects: class, score, box and outline of each.

A mask is the sum of the picture's prototypes [K, h, w] by the coefficients [K] of the place that found the object,
above nought, inside its box (Bolya et al.: YOLACT, 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.server import decode
from inference.server.requested import Requested
from inference.server.spec import DecodeSpec, ModelSpec
from inference.task_kinds.detection.answer import limits_of
from inference.task_kinds.instances.outlines import outlines
from inference.task_kinds.served import Answer, Arrays

MOST_CELLS = 64  # along each side of the grid an outline is drawn from


@dataclass(frozen=True)
class Found:
    """One object: `corners` x1 y1 x2 y2 in the picture's pixels, `place` of its class, `logits` of its mask.

    `logits` [h, w] is the part of the model's map around the object; `within` says where `cells`, the corners of the
    box rounded outwards to whole pixels, lie in it.
    """

    corners: NDArray[np.float32]
    place: int
    score: float
    cells: tuple[int, int, int, int]
    logits: NDArray[np.float32]
    within: tuple[float, float, float, float]

    def drawn(self, width: int, height: int) -> NDArray[np.float32]:
        """The logits over the box at this size [height, width]."""
        image = Image.fromarray(self.logits)
        return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR, box=self.within))

    def mask(self, width: int, height: int) -> NDArray[np.bool_]:
        """Which pixels [H, W] of a picture of this size it covers."""
        covered = np.zeros((height, width), np.bool_)
        x0, y0, x1, y1 = self.cells
        if x1 > x0 and y1 > y0:
            covered[y0:y1, x0:x1] = self.drawn(x1 - x0, y1 - y0) > 0
        return covered

    def rings(self) -> list[list[float]]:
        """Its outline in the picture's pixels, x and y in turn, holes as rings of their own; [] where it has none."""
        x0, y0, x1, y1 = self.cells
        if x1 <= x0 or y1 <= y0:
            return []
        across, down = min(x1 - x0, MOST_CELLS), min(y1 - y0, MOST_CELLS)
        step = np.array([(x1 - x0) / across, (y1 - y0) / down])
        traced = outlines(self.drawn(across, down))
        return [(ring * step + (x0, y0)).round(1).ravel().tolist() for ring in traced]


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each picture its objects in the picture's own pixels, best first."""
    limits = limits_of(spec.decode, requested)
    return [
        [
            {
                **spec.class_at(one.place),
                "score": round(one.score, 6),
                "box": [round(float(side), 2) for side in one.corners],
                "polygon": one.rings(),
            }
            for one in objects(spec, outputs, row, placement, limits)
        ]
        for row, placement in enumerate(placements)
    ]


def objects(
    spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement, limits: DecodeSpec
) -> Iterator[Found]:
    """The objects of one picture of a batch, best first."""
    boxes, scores, shares, prototypes = (
        np.asarray(outputs[spec.outputs[role]][row], np.float32) for role in ANSWER.outputs
    )
    if spec.input is None or prototypes.ndim != 3 or shares.shape != (len(boxes), len(prototypes)):
        raise ValueError(f"coefficients {shares.shape} and prototypes {prototypes.shape} make no masks")
    rows, columns = prototypes.shape[1:]
    across, down = columns / spec.input.width, rows / spec.input.height
    found = decode.detections(
        boxes, scores, placement, score_threshold=limits.score_threshold, iou_threshold=limits.iou_threshold,
        max_detections=limits.max_detections,
    )  # fmt: skip
    for corners, score, kind, place in zip(found.boxes, found.scores, found.classes, found.places, strict=True):
        x0, y0 = (int(side) for side in corners[:2])
        x1, y1 = (int(np.ceil(side)) for side in corners[2:])
        left, right = ((x * placement.scale_x + placement.offset_x) * across for x in (x0, x1))
        top, bottom = ((y * placement.scale_y + placement.offset_y) * down for y in (y0, y1))
        first, last = max(int(left) - 1, 0), min(int(right) + 2, columns)
        upper, lower = max(int(top) - 1, 0), min(int(bottom) + 2, rows)
        logits = np.tensordot(shares[place], prototypes[:, upper:lower, first:last], 1)
        within = (left - first, top - upper, min(right, columns) - first, min(bottom, rows) - upper)
        yield Found(corners, int(kind), float(score), (x0, y0, x1, y1), np.ascontiguousarray(logits), within)


ANSWER = Answer(outputs=("boxes", "scores", "coefficients", "prototypes"), read=read, slow=True)
