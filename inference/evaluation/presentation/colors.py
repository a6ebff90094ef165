"""Colors of the classes of an evaluation."""

from __future__ import annotations

from typing import Any

from inference.evaluation.models import Evaluation
from inference.kit.contracts.served_task import SHAPES
from inference.registry import class_colors, prediction_shapes

MAX_IN_LEGEND = 24


def colors_of(evaluation: Evaluation, content: dict[str, Any]) -> dict[int, str]:
    """Return class id → color, as the dataset has them that the model learned from, else the evaluated one."""
    trained_on = evaluation.model_version.dataset_version if evaluation.model_version else None
    return class_colors.for_classes(content.get("classes", []), trained_on, evaluation.version)


def class_legend(evaluation: Evaluation, content: dict[str, Any]) -> list[tuple[str, str]]:
    """Return color and name of the first classes, where images show objects in the colors of their classes."""
    if prediction_shapes.draft_of(evaluation.task) != SHAPES:
        return []
    colors = colors_of(evaluation, content)
    return [(colors[row["id"]], row["name"]) for row in content.get("classes", [])[:MAX_IN_LEGEND]]
