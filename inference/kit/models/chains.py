"""Let a second model look at each object that a detector found, cut out of the picture's own pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.spec import CLASS_SCORE, DETECTED, DETECTED_SCORE, DecodeSpec, Graph, InputSpec, ModelSpec
from inference.kit.task_kinds import TASKS

MAX_OBJECTS = 100  # of a picture, the surest first
CUTS_AT_ONCE = 16  # objects in one run of the second model
ABSENT = -1.0

Outputs = dict[str, NDArray[np.generic]]
Find = Callable[[ModelSpec, Mapping[str, NDArray[np.generic]], int, decode.Placement, DecodeSpec], decode.Detections]


@dataclass(frozen=True)
class _Cut:
    """One object to classify: row of its image in the batch, index among the boxes there, input of the second model."""

    row: int
    index: int
    sample: decode.Floats


class Chain:
    """The second model of a chain, and how it is run on the objects of the first."""

    def __init__(self, spec: ModelSpec, graph: Graph, engine: Engine) -> None:
        first, second = (part.spec for part in graph.parts)
        self.graph, self.first, self.second, self.engine = graph, first, second, engine
        self.find = cast(Find, TASKS[first.task].answer.detect)
        self.seen = replace(cast(InputSpec, second.input), margin=graph.margin)
        self.limits = DecodeSpec(
            graph.min_score, first.decode.iou_threshold, min(first.decode.max_detections, MAX_OBJECTS)
        )
        index_by_name = {model_class.name: index for index, model_class in enumerate(spec.classes)}
        self.looked_at = np.array([not graph.only or model_class.name in graph.only for model_class in first.classes])
        self.own = [
            index_by_name.get(model_class.name, 0) for model_class in first.classes
        ]  # of a class that is not looked at
        self.count = len(spec.classes)

    def follow(self, parcels: Sequence[decode.Parcel], outputs: Mapping[str, NDArray[np.generic]]) -> Outputs:
        """Return the objects of each image as boxes in the frame of the detector, scores, and the detector's classes.

        A score is the detector's times how sure the second model is of the likeliest class; of an object that it does
        not look at, the detector's.
        """
        detections = [
            self._drop_unknown(self.find(self.first, outputs, row, parcel.placements[0], self.limits))
            for row, parcel in enumerate(parcels)
        ]
        shape = (len(parcels), MAX_OBJECTS)
        boxes, scores = np.zeros((*shape, 4), np.float32), np.full((*shape, self.count), ABSENT, np.float32)
        detected, sure = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        class_score = np.full(shape, np.nan, np.float32)
        for row, (parcel, objects) in enumerate(zip(parcels, detections, strict=True)):
            count = len(objects.scores)
            boxes[row, :count] = parcel.placements[0].to_input(objects.boxes)
            detected[row, :count], sure[row, :count] = objects.classes, objects.scores
            for index in np.flatnonzero(~self.looked_at[objects.classes]):
                scores[row, index, self.own[objects.classes[index]]] = objects.scores[index]
        for cut, (kind, score) in self._answers(self._cuts(parcels, detections)):
            class_score[cut.row, cut.index] = score
            scores[cut.row, cut.index, kind] = score * detections[cut.row].scores[cut.index]
        return {
            "boxes": boxes, "scores": scores, DETECTED: detected, DETECTED_SCORE: sure, CLASS_SCORE: class_score
        }  # fmt: skip

    def _drop_unknown(self, detections: decode.Detections) -> decode.Detections:
        """Drop the objects of classes that the detector's description does not name."""
        is_known = detections.classes < len(self.first.classes)
        return decode.Detections(
            detections.boxes[is_known],
            detections.scores[is_known],
            detections.classes[is_known],
            detections.places[is_known],
        )

    def _cuts(self, parcels: Sequence[decode.Parcel], detections: Sequence[decode.Detections]) -> Iterator[_Cut]:
        for row, (parcel, objects) in enumerate(zip(parcels, detections, strict=True)):
            picture = cast(Image.Image, parcel.picture)
            for index in np.flatnonzero(self.looked_at[objects.classes]):
                yield _Cut(row, int(index), cut_out(picture, self.seen, objects.boxes[index]))

    def _answers(self, cuts: Iterator[_Cut]) -> Iterator[tuple[_Cut, tuple[int, float]]]:
        """Yield each crop with the index of its likeliest class and its score; few are in memory at a time."""
        read = cast(Callable[[ModelSpec, Outputs], decode.Floats], TASKS[self.second.task].answer.shares)
        at_once = CUTS_AT_ONCE if self.engine.batches else 1
        while some := list(islice(cuts, at_once)):
            outputs = self.engine.run({self.seen.name: np.stack([cut.sample for cut in some])})
            for cut, shares in zip(some, read(self.second, outputs)[:, : len(self.second.classes)], strict=True):
                best = int(shares.argmax())
                yield cut, (best, float(shares[best]))


def cut_out(picture: Image.Image, spec: InputSpec, box: Sequence[float] | NDArray[np.float32]) -> decode.Floats:
    """Return the sample of a box for a model: with the margin of its input, and at least one pixel.

    One that learned from objects sees the box as it learned to; one that learned from pictures sees the cut-out as a
    picture.
    """
    left, top, right, bottom = (float(edge) for edge in box)
    right, bottom = max(right, left + 1), max(bottom, top + 1)
    if spec.scope == "object":
        return decode.preprocess(picture, spec, (left, top, right, bottom))[0]
    extra_width, extra_height = (right - left) * spec.margin, (bottom - top) * spec.margin
    x0, y0 = max(0, math.floor(left - extra_width)), max(0, math.floor(top - extra_height))
    x1, y1 = min(picture.width, math.ceil(right + extra_width)), min(picture.height, math.ceil(bottom + extra_height))
    x0, y0 = min(x0, picture.width - 1), min(y0, picture.height - 1)
    return decode.preprocess(picture.crop((x0, y0, max(x1, x0 + 1), max(y1, y0 + 1))), spec)[0]
