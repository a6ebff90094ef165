"""A segmenter's logits as one mask for each class that a picture shows.

The first channel of the logits is the ground where there is one more of them than classes. Logits may be coarser than
the input: they are enlarged to the picture's own pixels before the likeliest class is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.server import decode
from inference.server.requested import Requested
from inference.server.spec import InputSpec, ModelSpec
from inference.task_kinds.segmentation import runs
from inference.task_kinds.served import Answer, Arrays

GROUND = -1  # in a map: no class of the model


@dataclass(frozen=True)
class Found:
    """What one picture shows: `places` [H, W] of the model's classes, and how sure of each that occurs."""

    places: NDArray[np.int32]
    scores: dict[int, float]


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each picture the classes it shows, the largest first: share of its pixels, score, box, mask."""
    lowest = requested.score_threshold or 0.0
    return [_classes(spec, segments(spec, outputs, row, placement), lowest) for row, placement in enumerate(placements)]


def segments(spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement) -> Found:
    """The likeliest class of each pixel of one picture of a batch."""
    logits = np.asarray(outputs[spec.outputs["logits"]][row], np.float32)
    seen = spec.input
    if seen is None or logits.ndim != 3:
        raise ValueError(f"logits of shape {logits.shape} are no map of classes")
    ground = 1 if len(logits) > len(spec.classes) else 0
    coarse = logits.argmax(0)
    likely = np.moveaxis(decode.probabilities(np.moveaxis(logits, 0, -1)), -1, 0)
    box = _within(placement, seen, logits.shape[1:])
    best = np.full((placement.height, placement.width), -np.inf, np.float32)
    places = np.full(best.shape, GROUND, np.int32)
    scores = {}
    for channel in np.unique(coarse):  # what is likeliest nowhere on the coarse map is so nowhere else
        size = (placement.width, placement.height)
        large = np.asarray(Image.fromarray(logits[channel]).resize(size, Image.Resampling.BILINEAR, box=box))
        wins = large > best
        best[wins], places[wins] = large[wins], int(channel) - ground
        scores[int(channel) - ground] = float(likely[channel][coarse == channel].mean())
    return Found(places, {place: score for place, score in scores.items() if place != GROUND})


def _within(placement: decode.Placement, seen: InputSpec, shape: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Where the picture lies in a map of this shape (rows, columns): left, top, right, bottom in its cells."""
    across, down = shape[1] / seen.width, shape[0] / seen.height
    left, top = placement.offset_x * across, placement.offset_y * down
    right = min(left + placement.width * placement.scale_x * across, float(shape[1]))
    return left, top, right, min(top + placement.height * placement.scale_y * down, float(shape[0]))


def _classes(spec: ModelSpec, found: Found, lowest: float) -> list[dict[str, Any]]:
    answers = []
    for place, score in found.scores.items():
        mask = found.places == place
        if score < lowest or not mask.any():
            continue
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]
        share = round(float(mask.mean()), 6)
        answers.append(
            {**spec.class_at(place), "share": share, "score": round(score, 6), "box": box, "mask": runs.encode(mask)}
        )
    return sorted(answers, key=lambda one: -one["share"])


ANSWER = Answer(outputs=("logits",), read=read, slow=True)
