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

MOST_OBJECTS = 100  # of a picture, the surest first
CUTS_AT_ONCE = 16  # objects in one run of the second model
ABSENT = -1.0

Outputs = dict[str, NDArray[np.generic]]
Find = Callable[[ModelSpec, Mapping[str, NDArray[np.generic]], int, decode.Placement, DecodeSpec], decode.Detections]


@dataclass(frozen=True)
class _Cut:
    """One object to look at: its picture in the run, its place among the boxes there, what the second model gets."""

    row: int
    place: int
    sample: decode.Floats


class Chain:
    """The second model of a chain, and how it is asked."""

    def __init__(self, spec: ModelSpec, graph: Graph, engine: Engine) -> None:
        first, second = (part.spec for part in graph.parts)
        self.graph, self.first, self.second, self.engine = graph, first, second, engine
        self.find = cast(Find, TASKS[first.task].answer.found)
        self.seen = replace(cast(InputSpec, second.input), margin=graph.margin)
        self.limits = DecodeSpec(
            graph.min_score, first.decode.iou_threshold, min(first.decode.max_detections, MOST_OBJECTS)
        )
        places = {known.name: place for place, known in enumerate(spec.classes)}
        self.looked_at = np.array([not graph.only or known.name in graph.only for known in first.classes])
        self.own = [places.get(known.name, 0) for known in first.classes]  # of a class that is not looked at
        self.count = len(spec.classes)

    def follow(self, parcels: Sequence[decode.Parcel], outputs: Mapping[str, NDArray[np.generic]]) -> Outputs:
        """The objects of each picture as boxes in the frame of the detector, scores, and what the detector said.

        A score is the detector's times how sure the second model is of the likeliest class; of an object that it does
        not look at, the detector's.
        """
        found = [
            self._known(self.find(self.first, outputs, row, parcel.placements[0], self.limits))
            for row, parcel in enumerate(parcels)
        ]
        shape = (len(parcels), MOST_OBJECTS)
        boxes, scores = np.zeros((*shape, 4), np.float32), np.full((*shape, self.count), ABSENT, np.float32)
        detected, sure = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        class_score = np.full(shape, np.nan, np.float32)
        for row, (parcel, one) in enumerate(zip(parcels, found, strict=True)):
            count = len(one.scores)
            boxes[row, :count] = parcel.placements[0].to_input(one.boxes)
            detected[row, :count], sure[row, :count] = one.classes, one.scores
            for place in np.flatnonzero(~self.looked_at[one.classes]):
                scores[row, place, self.own[one.classes[place]]] = one.scores[place]
        for cut, (kind, score) in self._answers(self._cuts(parcels, found)):
            class_score[cut.row, cut.place] = score
            scores[cut.row, cut.place, kind] = score * found[cut.row].scores[cut.place]
        return {
            "boxes": boxes, "scores": scores, DETECTED: detected, DETECTED_SCORE: sure, CLASS_SCORE: class_score
        }  # fmt: skip

    def _known(self, found: decode.Detections) -> decode.Detections:
        """Without what is of no class that the detector's description names."""
        known = found.classes < len(self.first.classes)
        return decode.Detections(found.boxes[known], found.scores[known], found.classes[known], found.places[known])

    def _cuts(self, parcels: Sequence[decode.Parcel], found: Sequence[decode.Detections]) -> Iterator[_Cut]:
        for row, (parcel, one) in enumerate(zip(parcels, found, strict=True)):
            picture = cast(Image.Image, parcel.picture)
            for place in np.flatnonzero(self.looked_at[one.classes]):
                yield _Cut(row, int(place), cut_out(picture, self.seen, one.boxes[place]))

    def _answers(self, cuts: Iterator[_Cut]) -> Iterator[tuple[_Cut, tuple[int, float]]]:
        """Each cut with the place of its likeliest class and how sure that is; few are held at a time."""
        read = cast(Callable[[ModelSpec, Outputs], decode.Floats], TASKS[self.second.task].answer.shares)
        at_once = CUTS_AT_ONCE if self.engine.batches else 1
        while some := list(islice(cuts, at_once)):
            said = self.engine.run({self.seen.name: np.stack([cut.sample for cut in some])})
            for cut, shares in zip(some, read(self.second, said)[:, : len(self.second.classes)], strict=True):
                best = int(shares.argmax())
                yield cut, (best, float(shares[best]))


def cut_out(picture: Image.Image, seen: InputSpec, box: Sequence[float] | NDArray[np.float32]) -> decode.Floats:
    """What a model gets of a box: with the margin of its input, and never less than a pixel.

    One that learned from objects sees the box as it learned to; one that learned from pictures sees the cut-out as a
    picture.
    """
    left, top, right, bottom = (float(edge) for edge in box)
    right, bottom = max(right, left + 1), max(bottom, top + 1)
    if seen.scope == "object":
        return decode.preprocess(picture, seen, (left, top, right, bottom))[0]
    wide, high = (right - left) * seen.margin, (bottom - top) * seen.margin
    x0, y0 = max(0, math.floor(left - wide)), max(0, math.floor(top - high))
    x1, y1 = min(picture.width, math.ceil(right + wide)), min(picture.height, math.ceil(bottom + high))
    x0, y0 = min(x0, picture.width - 1), min(y0, picture.height - 1)
    return decode.preprocess(picture.crop((x0, y0, max(x1, x0 + 1), max(y1, y0 + 1))), seen)[0]
