"""A segmenter's logits as one mask for each class that a picture shows.

The first channel of the logits is the ground where there is one more of them than classes. Logits may be coarser than
the input: they are enlarged to the picture's own pixels before the likeliest class is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.kit.contracts.layouts import per_class
from inference.kit.contracts.schema import BOX, CLASS, INTEGER, SHARE, TEXT, a_list, an_object
from inference.kit.contracts.served_task import SHAPES, Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec, ModelSpec
from inference.kit.task_kinds.segmentation import runs
from training.presets.tiling.maps import Blend

GROUND = -1  # in a map: no class of the model
PLACES, SURE = "places", "sure"  # roles of a picture's map [H, W], and of how sure of each class [C], nought if nowhere


@dataclass(frozen=True)
class Found:
    """What one picture shows: `places` [H, W] of the model's classes, and how sure of each that occurs."""

    places: NDArray[np.signedinteger[Any]]
    scores: dict[int, float]


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each picture the classes it shows, the largest first: share of its pixels, score, box, mask."""
    lowest = requested.score_threshold or 0.0
    return [_classes(spec, segments(spec, outputs, row, placement), lowest) for row, placement in enumerate(placements)]


def segments(spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement) -> Found:
    """Return the likeliest class of each pixel of one image of a batch."""
    if PLACES in spec.outputs:
        indices, confidences = (outputs[spec.outputs[role]][row] for role in (PLACES, SURE))
        return Found(indices, {int(index): float(confidences[index]) for index in np.flatnonzero(confidences)})
    logits = np.asarray(outputs[spec.outputs["logits"]][row], np.float32)
    input_spec = spec.input
    if input_spec is None or logits.ndim != 3:
        raise ValueError(f"logits of shape {logits.shape} are no map of classes")
    ground = 1 if len(logits) > len(spec.classes) else 0
    coarse = logits.argmax(0)
    likely = np.moveaxis(decode.probabilities(np.moveaxis(logits, 0, -1)), -1, 0)
    box = _within(placement, input_spec, logits.shape[1:])
    best = np.full((placement.height, placement.width), -np.inf, np.float32)
    indices = np.full(best.shape, GROUND, np.int32)
    scores = {}
    for channel in np.unique(coarse):  # what is likeliest nowhere on the coarse map is so nowhere else
        size = (placement.width, placement.height)
        large = np.asarray(Image.fromarray(logits[channel]).resize(size, Image.Resampling.BILINEAR, box=box))
        wins = large > best
        best[wins], indices[wins] = large[wins], int(channel) - ground
        scores[int(channel) - ground] = float(likely[channel][coarse == channel].mean())
    return Found(indices, {index: score for index, score in scores.items() if index != GROUND})


def _within(placement: decode.Placement, spec: InputSpec, shape: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Return the placement of the image in a map of this shape (rows, columns): left, top, right, bottom in cells."""
    across, down = shape[1] / spec.width, shape[0] / spec.height
    left, top = placement.offset_x * across, placement.offset_y * down
    right = min(left + placement.width * placement.scale_x * across, float(shape[1]))
    return left, top, right, min(top + placement.height * placement.scale_y * down, float(shape[0]))


def _classes(spec: ModelSpec, result: Found, lowest: float) -> list[dict[str, Any]]:
    answers = []
    for index, score in result.scores.items():
        mask = result.places == index
        if score < lowest or not mask.any():
            continue
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]
        share = round(float(mask.mean()), 6)
        answers.append(
            {**spec.class_at(index), "share": share, "score": round(score, 6), "box": box, "mask": runs.encode(mask)}
        )
    return sorted(answers, key=lambda answer: -answer["share"])


class OfTiles:
    """The map of a picture from the logits of its tiles, which blend where they overlap."""

    def __init__(self, spec: ModelSpec, size: tuple[int, int]) -> None:
        if spec.input is None:
            raise ValueError("a model without a described input has no tiles")
        self.spec, self.size = spec, size
        self.places = np.full((1, size[1], size[0]), GROUND, np.int16)
        self.ground = 0
        self.blend = Blend(size, (spec.input.width, spec.input.height), self._draw)

    def add(self, outputs: Arrays, placements: Sequence[decode.Placement]) -> None:
        for logits, placement in zip(outputs[self.spec.outputs["logits"]], placements, strict=True):
            self.ground = 1 if len(logits) > len(self.spec.classes) else 0
            self.blend.add((round(-placement.offset_x), round(-placement.offset_y)), np.asarray(logits, np.float32))

    def result(self) -> tuple[ModelSpec, Arrays, decode.Placement]:
        sure = np.zeros((1, len(self.spec.classes)), np.float32)
        for channel, likely in self.blend.end().items():
            if channel >= self.ground:
                sure[0, channel - self.ground] = likely
        named: dict[str, NDArray[np.generic]] = {PLACES: self.places, SURE: sure}
        spec = replace(self.spec, outputs={role: role for role in named})
        return spec, named, decode.Placement(*self.size, 1.0, 1.0)

    def _draw(self, top: int, channels: NDArray[np.uint16]) -> None:
        np.subtract(channels, self.ground, out=self.places[0, top : top + len(channels)], casting="unsafe")


LAYOUTS = (per_class("logits", "Scores per class and pixel [N, C, height, width]", rank=4, ground=True),)
ITEM = an_object(
    **CLASS,
    share=SHARE,
    score=SHARE,
    box=BOX,
    mask={
        **an_object(size=a_list(INTEGER, "Height and width."), counts=TEXT),
        "description": "COCO's compressed runs.",
    },
)
ANSWER = Answer(
    outputs=("logits",),
    read=read,
    item=ITEM,
    draft=SHAPES,
    options=("score_threshold",),
    slow=True,
    joining=OfTiles,
    layouts=LAYOUTS,
    maps="logits",
)
