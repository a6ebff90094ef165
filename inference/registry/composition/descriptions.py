"""The model.json of a composed version. Pure: descriptions in, description out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.kit.model_io.spec import CHAIN, ENSEMBLE, ModelSpec
from inference.kit.models import model_json

Described = Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """How the parts are combined, see `kit.model_io.spec.Graph`. `weights` are those of an ensemble's parts."""

    kind: str
    weights: Sequence[float] = ()
    way: str = ""
    iou: float = 0.55
    margin: float = 0.0
    min_score: float = 0.3
    only: Sequence[str] = field(default_factory=tuple)


def describe(recipe: Recipe, parts: Sequence[Described], labels: Sequence[str]) -> dict[str, Any]:
    """Return the model.json of a composed version.

    Args:
        parts: the model.json of each part, in their order.
        labels: what each part is called, OWNER/NAME v2.

    Raises:
        BadModel: they do not fit together.
    """
    weights = recipe.weights or [1.0] * len(parts)
    graph: dict[str, Any] = {"kind": recipe.kind}
    if recipe.kind == ENSEMBLE:
        graph |= {"way": recipe.way, "iou": recipe.iou}
    if recipe.kind == CHAIN:
        graph |= {"margin": recipe.margin, "min_score": recipe.min_score, "only": list(recipe.only)}
    graph["parts"] = [
        {"file": f"part{number}.onnx", "label": label, "weight": weight, "model": dict(part)}
        for number, (part, label, weight) in enumerate(zip(parts, labels, weights, strict=True), 1)
    ]
    top = {"format": 1, "task": parts[0].get("task"), "architecture": recipe.kind, "graph": graph}
    return top | _derived_fields(model_json.parse(top))


def _derived_fields(spec: ModelSpec) -> dict[str, Any]:
    """Return the fields that follow from the graph, for programs that do not support graphs."""
    input_spec = spec.input
    assert input_spec is not None  # parts without a described input do not fit
    return {
        "classes": [{"id": label.id, "name": label.name} for label in spec.classes],
        "input": {
            "name": input_spec.name, "width": input_spec.width, "height": input_spec.height,
            "channels": input_spec.channels,
            "mean": list(input_spec.mean), "std": list(input_spec.std), "resize": input_spec.resize,
            "order": input_spec.order,
        },
        "output": dict(spec.outputs),
        "decode": {
            "score_threshold": spec.decode.score_threshold, "iou_threshold": spec.decode.iou_threshold,
            "max_detections": spec.decode.max_detections,
        },
    }  # fmt: skip
