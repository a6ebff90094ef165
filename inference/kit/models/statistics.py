"""What a model is shown and what it answers, as counts that can be added up: no picture and no name is kept.

A tally is plain JSON: {"images": n, "classes": {name: n}, "scores": [20], "features": {name: [20]}, "layout":
{"sums": [27], "squares": [27]}, "looks": {"images": n, "sums": [22], "squares": [22]}}. Layout is the mean colour,
0..1, of each field of a 3×3 grid over a picture; looks are what descriptor.py says of it.
"""

from __future__ import annotations

import io
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from inference.kit.model_io import decode
from inference.kit.models import descriptor

log = logging.getLogger(__name__)
LEFT = "statistics.json"  # in the outputs of a stopped server: the last response of GET /statistics
BINS = 20
SIDE = 48  # pixels of the small picture that everything is read from
FIELDS = 3 * 3 * 3
MAX_CLASSES = 1000
MAX_CREDIT_S = 1.0
FEATURES = ("brightness", "contrast", "saturation", "sharpness", "size", "shape")
#: log10 of pixels, log2 of width / height, log10 of sharpness: smallest and largest values that are distinguished.
SIZES, SHAPES, SHARPNESS = (3.0, 8.0), (-3.0, 3.0), (-5.0, 0.0)
Tally = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What was read from a picture: features and mean colours, each 0..1, and the numbers of descriptor.py."""

    features: Mapping[str, float]
    layout: Sequence[float]
    looks: Sequence[float]


def empty() -> Tally:
    """A tally of nothing."""
    return {
        "images": 0,
        "classes": {},
        "scores": [0] * BINS,
        "features": {name: [0] * BINS for name in FEATURES},
        "layout": {"sums": [0.0] * FIELDS, "squares": [0.0] * FIELDS},
        "looks": descriptor.empty(),
    }


def read(data: bytes, *, max_pixels: int) -> Seen:
    """What a picture is like; a JPEG is decoded at an eighth of its size.

    Raises:
        Exception: it cannot be read; decoders raise anything.
    """
    with Image.open(io.BytesIO(data), formats=decode.FORMATS) as opened:
        width, height = opened.size
        if width * height > max_pixels:
            raise ValueError("too many pixels")
        opened.draft("RGB", (2 * SIDE, 2 * SIDE))
        opened.load()
        ImageOps.exif_transpose(opened, in_place=True)
        turned = (opened.width > opened.height) != (width > height)
        return features(opened, (height, width) if turned else (width, height))


def features(image: Image.Image, size: tuple[int, int]) -> Seen:
    """Return the statistics of an upright image that has this width and height, or had before it was made smaller."""
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    width, height = size
    small = np.asarray(rgb.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=1.0), np.float32) / 255
    grey = small @ np.array([0.299, 0.587, 0.114], np.float32)
    edges = 4 * grey[1:-1, 1:-1] - grey[:-2, 1:-1] - grey[2:, 1:-1] - grey[1:-1, :-2] - grey[1:-1, 2:]
    values = {
        "brightness": float(grey.mean()),
        "contrast": min(1.0, 2 * float(grey.std())),
        "saturation": float((small.max(2) - small.min(2)).mean()),
        "sharpness": _within(math.log10(max(float(edges.var()), 1e-9)), *SHARPNESS),
        "size": _within(math.log10(max(1, width * height)), *SIZES),
        "shape": _within(math.log2(max(1, width) / max(1, height)), *SHAPES),
    }
    third = SIDE // 3
    layout = small.reshape(3, third, 3, third, 3).mean((1, 3)).ravel()
    rounded = [round(float(value), 6) for value in layout]
    return Seen(values, rounded, descriptor.compute(small, grey, values))


def _within(value: float, least: float, greatest: float) -> float:
    return min(1.0, max(0.0, (value - least) / (greatest - least)))


def add(tally: Tally, image: Seen, answers: Sequence[Mapping[str, Any]]) -> None:
    """Count an image with its predictions."""
    tally["images"] += 1
    for name, value in image.features.items():
        tally["features"][name][_bin(value)] += 1
    for index, value in enumerate(image.layout):
        tally["layout"]["sums"][index] += value
        tally["layout"]["squares"][index] += value * value
    descriptor.add(tally["looks"], image.looks)
    for prediction in answers:
        name = str(prediction.get("name", ""))
        if name in tally["classes"] or len(tally["classes"]) < MAX_CLASSES:
            tally["classes"][name] = tally["classes"].get(name, 0) + 1
        tally["scores"][_bin(float(prediction.get("score", 0.0)))] += 1


def _bin(value: float) -> int:
    return min(BINS - 1, max(0, int(value * BINS)))


def counted(predictions: Sequence[Mapping[str, Any]], *, best_only: bool) -> Sequence[Mapping[str, Any]]:
    """Return the predictions that count for an image: the best one, or all that are present."""
    if best_only:
        return predictions[:1]
    return [prediction for prediction in predictions if prediction.get("present", True)]


class Hours:
    """Tallies by the hour they were made in; the last three are kept.

    Args:
        share: of the time that may go into reading features; pictures beyond are not counted.
    """

    KEPT = 3

    def __init__(self, *, share: float = 0.02, clock: Callable[[], float] = time.time) -> None:
        self._share, self._clock = share, clock
        self._credit, self._seen = MAX_CREDIT_S, time.perf_counter()
        self.tallies: dict[int, Tally] = {}

    def wanted(self) -> bool:
        """Whether there is time for one more; of quiet hours no more than a second is saved for busy ones."""
        moment = time.perf_counter()
        self._credit = min(MAX_CREDIT_S, self._credit + self._share * (moment - self._seen))
        self._seen = moment
        return self._credit > 0

    def read(self, data: bytes, *, max_pixels: int) -> Seen:
        """`read`, with the time it takes counted; for any thread."""
        started = time.perf_counter()
        try:
            return read(data, max_pixels=max_pixels)
        finally:
            self._credit -= time.perf_counter() - started

    def to_json(self) -> dict[str, Tally]:
        """Return the tallies by the second, as text, at which their hour began."""
        return {str(hour): tally for hour, tally in self.tallies.items()}

    def leave(self, folder: Path) -> None:
        """Write down what was counted, so that it is not lost with the process."""
        if not self.tallies:
            return
        try:
            (folder / LEFT).write_text(json.dumps(self.to_json()))
        except OSError as reason:  # a full disk keeps no server from ending
            log.warning("The last counts are lost: %s", reason)

    def add(self, image: Seen, answers: Sequence[Mapping[str, Any]]) -> None:
        """Count an image in the current hour."""
        hour = int(self._clock() // 3600) * 3600
        if hour not in self.tallies:
            self.tallies[hour] = empty()
            for old in sorted(self.tallies)[: -self.KEPT]:
                del self.tallies[old]
        add(self.tallies[hour], image, answers)
