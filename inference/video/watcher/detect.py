"""Run a detector on pictures that the decoder has already brought to its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.kit.model_io import decode
from inference.kit.model_io.spec import DecodeSpec, InputSpec, ModelSpec
from inference.kit.models import composed, model_json
from inference.kit.task_kinds import TASKS
from inference.video.watcher.pictures import Layout, Pixels

MAX_BOXES = 300  # boxes of a picture


class Unfit(Exception):
    """This model cannot watch; the message is for people."""


@dataclass(frozen=True)
class Found:
    """Boxes [n, 4] in pixels of the source, their scores and the ids of their classes."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    kinds: NDArray[np.int64]

    def some(self, which: NDArray[np.bool_]) -> Found:
        return Found(self.boxes[which], self.scores[which], self.kinds[which])


class Detector:
    """A model with its engine.

    Args:
        lowest: score below which boxes are not read.
    """

    def __init__(self, folder: Path, *, threads: int, lowest: float) -> None:
        self.spec: ModelSpec = model_json.load(folder)
        task = TASKS.get(self.spec.task)
        if task is None or task.answer.detect is None or self.spec.input is None:
            raise Unfit(f"Only models that find objects can watch; this one is for {self.spec.task}.")
        self.answer, self.detect = task.answer, task.answer.detect
        self.input: InputSpec = self.spec.input
        self.limits = DecodeSpec(lowest, self.spec.decode.iou_threshold, MAX_BOXES)
        self.ids = np.array([model_class.id for model_class in self.spec.classes], np.int64)
        self.engine = composed.load(folder, self.spec, threads=threads)
        self._ground: decode.Floats | None = None

    def frame_format(self) -> dict[str, Any]:
        """Return the size and format in which the decoder delivers frames."""
        spec = self.input
        return {
            "width": spec.width, "height": spec.height, "resize": spec.resize, "channels": spec.channels,
            "whole": spec.overlap is not None or bool(spec.parts),
        }  # fmt: skip

    def find(self, look: Pixels, layout: Layout) -> Found:
        """What is on a picture."""
        if self.input.overlap is not None:
            read = self._tiles(look)
        else:
            read = self._parcel(look) if self.input.parts else self._one(look, layout)
        return Found(read.boxes.astype(np.float64), read.scores.astype(np.float64), self.ids[read.classes])

    def _one(self, look: Pixels, layout: Layout) -> decode.Detections:
        spec = self.input
        height, width = look.shape[:2]
        left, top = (spec.width - width) // 2, (spec.height - height) // 2
        if self._ground is None:
            ground = np.full((spec.height, spec.width, spec.channels), decode.LETTERBOX_GREY, np.uint8)
            self._ground = np.ascontiguousarray(decode.normal(ground, spec))
        # the grey around stays as it is from picture to picture
        self._ground[:, top : top + height, left : left + width] = decode.normal(look, spec)
        placement = decode.Placement(
            layout.width, layout.height, width / layout.width, height / layout.height, left, top
        )
        outputs = self.engine.run({spec.name: self._ground[None]})
        return self.detect(self.spec, outputs, 0, placement, self.limits)

    def _parcel(self, look: Pixels) -> decode.Detections:
        """The boxes of a composed model, whose parts are each shown the whole picture as they expect it."""
        image = Image.fromarray(look if look.shape[2] == 3 else look[:, :, 0])
        parcel, placement = decode.preprocess(image, self.input)
        return self.detect(self.spec, self.engine.run({self.input.name: parcel[None]}), 0, placement, self.limits)

    def _tiles(self, look: Pixels) -> decode.Detections:
        """The boxes of a model that looks at tiles of the whole picture."""
        start = self.answer.joining
        if start is None:
            raise RuntimeError("a model with tiles was let in whose answers cannot be put together")
        image = Image.fromarray(look if look.shape[2] == 3 else look[:, :, 0])
        joined = start(self.spec, image.size)
        for pixels, placement in decode.looks(image, self.input):
            joined.add(self.engine.run({self.input.name: pixels[None]}), [placement])
        spec, outputs, placement = joined.result()
        return self.detect(spec, outputs, 0, placement, self.limits)


def followed(detections: Found, classes: Sequence[int]) -> Found:
    """Return the objects of the classes to follow; all where none is named."""
    return detections.some(np.isin(detections.kinds, list(classes))) if classes else detections
