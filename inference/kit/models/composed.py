"""A model composed of others: the engines of its parts behind the face of one, see `inference.kit.model_io.spec.Graph`.

It takes parcels (see `decode.Parcel`) and answers with the outputs of its task in the frame of its first part, so that
services, evaluations and predictions read them as those of any model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine, Loaded, TensorInfo, Tensors
from inference.kit.model_io.spec import CHAIN, FUSION, DecodeSpec, Graph, InputSpec, ModelSpec, Part
from inference.kit.models import boxes, maps
from inference.kit.models.chains import Chain, Find
from inference.kit.task_kinds import TASKS

LOWEST_SCORE, MAX_BOXES = 0.01, 300  # what of the boxes of one part of an ensemble is joined with the others
ABSENT = -1.0  # the score in rows that hold no box: below every threshold

Outputs = dict[str, NDArray[np.generic]]
Parcels = Sequence[decode.Parcel]


def load(folder: Path, spec: ModelSpec, *, threads: int = 1) -> Loaded:
    """The model in a folder, whether it is one file or composed of several."""
    if spec.graph is None:
        return Engine(folder / "model.onnx", threads=threads)
    return Composed(folder, spec, spec.graph, threads=threads)


class Composed:
    """The parts of a composed model, which run one after the other.

    It has no tensors of its own to exchange: it is handed pictures.
    """

    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()

    def __init__(self, folder: Path, spec: ModelSpec, graph: Graph, *, threads: int = 1) -> None:
        self.spec, self.graph = spec, graph
        self.seen = cast(InputSpec, spec.input)
        self.engines = [
            Engine(folder / part.file, threads=threads, runtime=str(part.spec.raw.get("runtime", "")))
            for part in graph.parts
        ]
        self.provider = " + ".join(dict.fromkeys(engine.provider for engine in self.engines))
        self.orders = [_order(spec, part) for part in graph.parts]
        self.chain = Chain(spec, graph, self.engines[1]) if graph.kind == CHAIN else None

    @property
    def batches(self) -> bool:
        """Whether parcels of several requests can be put into one run: all parts take batches."""
        return all(engine.batches for engine in self.engines)

    @property
    def even(self) -> bool:
        """Joining answers costs what was found, so pictures are not alike."""
        return False

    def run(self, feeds: Tensors, wanted: Sequence[str] | None = None) -> Outputs:
        """The outputs for an array [n] of parcels."""
        parcels = [cast(decode.Parcel, parcel) for parcel in feeds[self.seen.name]]
        if self.chain is not None:
            return self.chain.follow(parcels, self._answers(0, parcels))
        answers = [self._answers(index, parcels) for index in range(len(self.engines))]
        answer = TASKS[self.spec.task].answer
        if answer.shares is not None:
            return {"probabilities": self._mean(answers, answer.shares)}
        if answer.maps:
            return {answer.maps: self._maps(parcels, answers, answer.maps)}
        return self._boxes(parcels, answers)

    def _answers(self, index: int, parcels: Parcels) -> Outputs:
        """Run one part on all parcels."""
        name = cast(InputSpec, self.graph.parts[index].spec.input).name
        samples = [parcel.samples[index] for parcel in parcels]
        return self.engines[index].run({name: samples[0][None] if len(samples) == 1 else np.stack(samples)})

    def warm_up(self) -> None:
        """Let each part run once on zeros."""
        for engine in self.engines:
            engine.warm_up()

    def _mean(
        self, answers: Sequence[Outputs], read: Callable[[ModelSpec, Outputs], decode.Floats]
    ) -> NDArray[np.generic]:
        """Return the weighted mean of the class probabilities of the parts [N, C]."""
        parts = zip(self.graph.parts, self.orders, answers, strict=True)
        total = sum(
            part.weight * read(part.spec, part_outputs)[:, order].astype(np.float64)
            for part, order, part_outputs in parts
        )
        return np.asarray(total / sum(part.weight for part in self.graph.parts), np.float32)

    def _maps(self, parcels: Parcels, answers: Sequence[Outputs], role: str) -> NDArray[np.generic]:
        """Logits whose softmax is the weighted mean of the probabilities of ground and classes, for each cell.

        The maps of all parts are brought to the cells of the first; a part that knows no ground gives it nothing.
        """
        parts = list(zip(self.graph.parts, self.orders, answers, strict=True))
        logits = [
            maps.joined(
                [
                    maps.Seen(
                        _with_ground(part_outputs[part.spec.outputs[role]][row], order),
                        parcel.placements[index],
                        cast(InputSpec, part.spec.input),
                        part.weight,
                    )
                    for index, (part, order, part_outputs) in enumerate(parts)
                ]
            )
            for row, parcel in enumerate(parcels)
        ]
        return np.stack(logits)

    def _boxes(self, parcels: Parcels, answers: Sequence[Outputs]) -> Outputs:
        """Return boxes [N, P, 4] and scores [N, P, C] of all parts; rows without a box score below zero."""
        weights = [part.weight for part in self.graph.parts]
        join = boxes.fused if self.graph.method == FUSION else boxes.suppressed
        corners = np.zeros((len(parcels), MAX_BOXES, 4), np.float32)
        scores = np.full((len(parcels), MAX_BOXES, len(self.spec.classes)), ABSENT, np.float32)
        for row, parcel in enumerate(parcels):
            detections = [
                self._part_boxes(index, part_outputs, row, parcel) for index, part_outputs in enumerate(answers)
            ]
            best = join(detections, weights, iou=self.graph.iou)
            count = min(len(best.scores), MAX_BOXES)
            corners[row, :count] = parcel.placements[0].to_input(best.corners[:count])
            scores[row, np.arange(count), best.classes[:count]] = best.scores[:count]
        return {"boxes": corners, "scores": scores}

    def _part_boxes(self, index: int, answer: Outputs, row: int, parcel: decode.Parcel) -> boxes.Boxes:
        """Return the boxes of one part on one image, in its pixels and with the classes of the composed model."""
        part = self.graph.parts[index]
        limits = DecodeSpec(LOWEST_SCORE, part.spec.decode.iou_threshold, MAX_BOXES)
        find = cast(Find, TASKS[part.spec.task].answer.detect)
        detections = find(part.spec, answer, row, parcel.placements[index], limits)
        is_known = detections.classes < len(part.spec.classes)
        kinds = np.argsort(self.orders[index])[detections.classes[is_known]]
        return boxes.Boxes(
            detections.boxes[is_known].astype(np.float64), detections.scores[is_known].astype(np.float64), kinds
        )


def _order(spec: ModelSpec, part: Part) -> NDArray[np.int64]:
    """For each class of the composed model its index among those of a part; empty where the part has other classes."""
    index_by_name = {model_class.name: index for index, model_class in enumerate(part.spec.classes)}
    if any(model_class.name not in index_by_name for model_class in spec.classes):
        return np.zeros(0, np.int64)
    return np.array([index_by_name[model_class.name] for model_class in spec.classes], np.int64)


def _with_ground(logits: NDArray[Any], order: NDArray[np.int64]) -> decode.Floats:
    """Probabilities [1 + C, h, w] of the ground and of each class, in the order of the composed model."""
    shares = np.moveaxis(decode.probabilities(np.moveaxis(np.asarray(logits, np.float32), 0, -1)), -1, 0)
    ground = 1 if len(shares) > len(order) else 0
    nothing = np.zeros((1, *shares.shape[1:]), np.float32)
    return np.concatenate([shares[:1] if ground else nothing, shares[order + ground]])
