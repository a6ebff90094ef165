"""Colors of the classes of models: those that the training data has for classes of the same names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiplatform.lib import class_colors
from datasets.models import DatasetVersion
from inference.registry.models import ModelVersion


def for_classes(classes: Sequence[Mapping[str, Any]], *sources: DatasetVersion | None) -> dict[int, str]:
    """Return class id → color such as #4353d6.

    Args:
        classes: with "id" and "name"; ids of models and datasets may differ, so only names are compared.
        sources: dataset versions; the first that exists gives the colors of its classes.
    """
    data = next((source for source in sources if source is not None), None)
    earlier = [item | {"id": None} for item in data.colored_classes] if data else []
    return {int(number): color for number, color in class_colors.inherit(classes, earlier).items()}


def for_model(version: ModelVersion) -> dict[int, str]:
    """Return the colors of the classes of a model version."""
    return for_classes(version.classes, version.dataset_version)
