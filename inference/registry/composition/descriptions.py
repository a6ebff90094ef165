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


def described(recipe: Recipe, parts: Sequence[Described], labels: Sequence[str]) -> dict[str, Any]:
    """The model.json of a composed version.

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
        {"file": f"part{place}.onnx", "label": label, "weight": weight, "model": dict(part)}
        for place, (part, label, weight) in enumerate(zip(parts, labels, weights, strict=True), 1)
    ]
    top = {"format": 1, "task": parts[0].get("task"), "architecture": recipe.kind, "graph": graph}
    return top | _follows(model_json.parse(top))


def _follows(spec: ModelSpec) -> dict[str, Any]:
    """What follows from the graph, for programs that do not know of it."""
    seen = spec.input
    assert seen is not None  # parts without a described input do not fit
    return {
        "classes": [{"id": one.id, "name": one.name} for one in spec.classes],
        "input": {
            "name": seen.name, "width": seen.width, "height": seen.height, "channels": seen.channels,
            "mean": list(seen.mean), "std": list(seen.std), "resize": seen.resize,
            "order": seen.order,
        },
        "output": dict(spec.outputs),
        "decode": {
            "score_threshold": spec.decode.score_threshold, "iou_threshold": spec.decode.iou_threshold,
            "max_detections": spec.decode.max_detections,
        },
    }  # fmt: skip
