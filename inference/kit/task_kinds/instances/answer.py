"""An instance segmenter's outputs as objects: class, score, box and outline of each.

A mask is the sum of the picture's prototypes [K, h, w] by the coefficients [K] of the place that found the object,
above nought, inside its box (Bolya et al.: YOLACT, 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.kit.contracts.schema import BOX, CLASS, NUMBER, SHARE, a_list, an_object
from inference.kit.contracts.served_task import SHAPES, Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.task_kinds.detection.answer import OfTiles as BoxesOfTiles
from inference.kit.task_kinds.detection.answer import detections, limits_of
from inference.kit.task_kinds.instances.outlines import outlines
from inference.kit.task_kinds.segmentation import runs
from training.presets.tiling.masks import Patch, patch

MASKS = "masks"  # role of what tiles are put together to: a Patch for each place
MAX_CELLS = 64  # along each side of the grid an outline is drawn from


@dataclass(frozen=True)
class Found:
    """One object: `corners` x1 y1 x2 y2 in the pixels of the image, `index` of its class, `logits` of its mask.

    `logits` [h, w] is the part of the model's map around the object; `within` says where `cells`, the corners of the
    box rounded outwards to whole pixels, lie in it.
    """

    corners: NDArray[np.float32]
    index: int
    score: float
    cells: tuple[int, int, int, int]
    logits: NDArray[np.float32]
    within: tuple[float, float, float, float]

    def drawn(self, width: int, height: int) -> NDArray[np.float32]:
        """The logits over the box at this size [height, width]."""
        left, top, right, bottom = self.within
        if left >= right or top >= bottom:
            return np.full((height, width), -1, np.float32)
        image = Image.fromarray(self.logits)
        return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR, box=self.within))

    def runs(self, width: int, height: int) -> dict[str, Any]:
        """Which pixels of a picture of this size it covers, as COCO's runs."""
        x0, y0, x1, y1 = self.cells
        there = x1 > x0 and y1 > y0
        covered = self.drawn(x1 - x0, y1 - y0) > 0 if there else np.zeros((0, 0), bool)
        return runs.encode(covered, at=(x0, y0), size=(width, height))

    def rings(self) -> list[list[float]]:
        """Its outline in the picture's pixels, x and y in turn, holes as rings of their own; [] where it has none."""
        x0, y0, x1, y1 = self.cells
        if x1 <= x0 or y1 <= y0:
            return []
        across, down = min(x1 - x0, MAX_CELLS), min(y1 - y0, MAX_CELLS)
        step = np.array([(x1 - x0) / across, (y1 - y0) / down])
        traced = outlines(self.drawn(across, down))
        return [(ring * step + (x0, y0)).round(1).ravel().tolist() for ring in traced]


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image its objects in the pixels of the image, best first."""
    limits = limits_of(spec.decode, requested)
    return [
        [
            {
                **spec.class_at(item.index),
                "score": round(item.score, 6),
                "box": [round(float(side), 2) for side in item.corners],
                "polygon": item.rings(),
            }
            for item in objects(spec, outputs, row, placement, limits)
        ]
        for row, placement in enumerate(placements)
    ]


def objects(
    spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement, limits: DecodeSpec
) -> Iterator[Found]:
    """Yield the objects of one image of a batch, best first."""
    detected = detections(spec, outputs, row, placement, limits)
    if MASKS in spec.outputs:
        masks: Sequence[Patch] = outputs[spec.outputs[MASKS]][row]
        for corners, score, kind, index in zip(
            detected.boxes, detected.scores, detected.classes, detected.places, strict=True
        ):
            cells, own = _cells(corners), masks[index]
            yield Found(corners, int(kind), float(score), cells, own.logits, own.within(cells))
        return
    box_array, shares, prototypes = (
        np.asarray(outputs[spec.outputs[role]][row], np.float32) for role in ("boxes", *ANSWER.outputs[2:])
    )
    if spec.input is None or prototypes.ndim != 3 or shares.shape != (len(box_array), len(prototypes)):
        raise ValueError(f"coefficients {shares.shape} and prototypes {prototypes.shape} make no masks")
    rows, columns = prototypes.shape[1:]
    across, down = columns / spec.input.width, rows / spec.input.height
    for corners, score, kind, index in zip(
        detected.boxes, detected.scores, detected.classes, detected.places, strict=True
    ):
        x0, y0, x1, y1 = _cells(corners)
        left, right = ((x * placement.scale_x + placement.offset_x) * across for x in (x0, x1))
        top, bottom = ((y * placement.scale_y + placement.offset_y) * down for y in (y0, y1))
        first, last = max(int(left) - 1, 0), min(int(right) + 2, columns)
        upper, lower = max(int(top) - 1, 0), min(int(bottom) + 2, rows)
        logits = np.tensordot(shares[index], prototypes[:, upper:lower, first:last], 1)
        within = (left - first, top - upper, min(right, columns) - first, min(bottom, rows) - upper)
        yield Found(corners, int(kind), float(score), (x0, y0, x1, y1), np.ascontiguousarray(logits), within)


def _cells(corners: NDArray[np.float32]) -> tuple[int, int, int, int]:
    """A box rounded outwards to whole pixels."""
    x0, y0 = (int(side) for side in corners[:2])
    x1, y1 = (int(np.ceil(side)) for side in corners[2:])
    return x0, y0, x1, y1


class OfTiles(BoxesOfTiles):
    """The objects of the tiles of a picture, each once, with one mask."""

    def masks(
        self, outputs: Arrays, row: int, corner: tuple[float, float], boxes: decode.Detections
    ) -> Sequence[Patch]:
        shares, prototypes = (
            np.asarray(outputs[self.spec.outputs[role]][row], np.float32) for role in ANSWER.outputs[2:]
        )
        cell = self.parts.tile[0] / prototypes.shape[2]
        return [
            patch(shares[index], prototypes, box, corner, cell)
            for index, box in zip(boxes.places, boxes.boxes, strict=True)
        ]

    def result(self) -> tuple[ModelSpec, Arrays, decode.Placement]:
        joined = self.parts.joined(len(self.spec.classes))
        masks = np.empty((1, len(joined.masks)), object)
        masks[0, :] = joined.masks
        named: dict[str, NDArray[np.generic]] = {
            "boxes": joined.boxes[None],
            "scores": joined.scores[None],
            MASKS: masks,
        }
        spec = replace(self.spec, outputs={role: role for role in named})
        return spec, named, decode.Placement(*self.size, 1.0, 1.0)


ITEM = an_object(
    **CLASS,
    score=SHARE,
    box=BOX,
    polygon=a_list(a_list(NUMBER), "Outlines: x and y in turn; holes are outlines of their own."),
)
ANSWER = Answer(
    outputs=("boxes", "scores", "coefficients", "prototypes"),
    read=read,
    item=ITEM,
    draft=SHAPES,
    options=("score_threshold", "iou_threshold", "max_detections"),
    slow=True,
    joining=OfTiles,
    detect=detections,
)
