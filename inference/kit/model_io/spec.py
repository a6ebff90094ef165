"""model.json: inputs, outputs and classes of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TENSOR = "tensor"  # the task of a model without description: only tensors can be exchanged
ENSEMBLE, CHAIN = "ensemble", "chain"  # kinds of composed models
DETECTED, DETECTED_SCORE, CLASS_SCORE = "detected", "detected_score", "class_score"  # further outputs of a chain
RGB, BGR = "RGB", "BGR"
MEAN, FUSION, SUPPRESSION = "mean", "wbf", "nms"


@dataclass(frozen=True)
class ModelClass:
    id: int
    name: str


@dataclass(frozen=True)
class InputSpec:
    """How an image becomes the model's input. Mean and std apply to RGB values of 0..255.

    Args:
        scope: what the model has learned to look at: whole pictures, or one object, cut out by its box.
        margin: what is seen around a box, as a share of its sides.
        overlap: share of a side that neighbouring tiles have in common, where the model has learned from tiles of its
            input's size at pictures' own size, and looks at new ones so. None: it looks at whole pictures.
        parts: what the parts of a composed model expect, in their order; such a model is handed parcels, see
            `decode.Parcel`.
        cuts: the composed model cuts out of the picture what its second part looks at.
        blue_first: the input takes blue, green, red; mean and std are in the order red, green, blue even then.
    """

    name: str
    width: int
    height: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize: Literal["stretch", "letterbox"]
    scope: Literal["picture", "object"] = "picture"
    margin: float = 0.0
    overlap: float | None = None
    parts: tuple[InputSpec, ...] = ()
    cuts: bool = False
    blue_first: bool = False

    @property
    def order(self) -> str:
        """Of the channels, as model.json says it."""
        return BGR if self.blue_first else RGB


@dataclass(frozen=True)
class DecodeSpec:
    """How scores become answers; boxes are suppressed per class."""

    score_threshold: float = 0.3
    iou_threshold: float = 0.5
    max_detections: int = 300


@dataclass(frozen=True)
class Part:
    """One of the models that a composed one is made of: its file, what it is, and how much it counts."""

    file: str
    spec: ModelSpec
    weight: float = 1.0


@dataclass(frozen=True)
class Graph:
    """How a composed model answers by its parts.

    Args:
        kind: ENSEMBLE, whose parts all look at the picture, or CHAIN, whose second part looks at what the first found.
        method: how the answers of an ensemble are joined, see `graph_json.METHODS`.
        iou: overlap from which boxes of an ensemble are of one object.
        margin: what is cut out around a box, as a share of its sides.
        min_score: the first part's boxes below it are left out.
        only: names of the first part's classes whose objects the second part looks at; none: all.
    """

    kind: str
    parts: tuple[Part, ...]
    method: str = "mean"
    iou: float = 0.55
    margin: float = 0.0
    min_score: float = 0.3
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelSpec:
    """One model. `task` is the name of one of inference.kit.task_kinds, or TENSOR; a composed one has a `graph`."""

    task: str
    architecture: str = ""
    preset: str = ""
    classes: tuple[ModelClass, ...] = ()
    input: InputSpec | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)  # role → tensor name
    decode: DecodeSpec = DecodeSpec()
    graph: Graph | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)  # the file as it was

    def class_at(self, index: int) -> dict[str, Any]:
        """Return id and name of the class at an index of the output."""
        if index < len(self.classes):
            return {"class_id": self.classes[index].id, "name": self.classes[index].name}
        return {"class_id": int(index), "name": str(index)}
