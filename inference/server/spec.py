"""model.json: inputs, outputs and classes of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TENSOR = "tensor"  # the task of a model without description: only tensors can be exchanged


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


@dataclass(frozen=True)
class DecodeSpec:
    """How scores become answers; boxes are suppressed per class."""

    score_threshold: float = 0.3
    iou_threshold: float = 0.5
    max_detections: int = 300


@dataclass(frozen=True)
class ModelSpec:
    """One model. `task` is the name of one of inference.task_kinds, or TENSOR."""

    task: str
    architecture: str = ""
    preset: str = ""
    classes: tuple[ModelClass, ...] = ()
    input: InputSpec | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)  # role → tensor name
    decode: DecodeSpec = DecodeSpec()
    raw: Mapping[str, Any] = field(default_factory=dict)  # the file as it was

    def class_at(self, place: int) -> dict[str, Any]:
        """Id and name of the class at a place of the output."""
        if place < len(self.classes):
            return {"class_id": self.classes[place].id, "name": self.classes[place].name}
        return {"class_id": int(place), "name": str(place)}
