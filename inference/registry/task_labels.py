"""What a model version is for, as a label: a task, or less without a description."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from inference.kit.model_io.spec import TENSOR
from inference.registry.formats.folder import WEIGHTS
from training.catalog.task_kinds import TASKS

NONE = "–"  # shown where there is no value
UNDESCRIBED = {
    TENSOR: _("Tensors only"),  # an ONNX file without a description
    WEIGHTS: _("Weights only"),  # safetensors: kept and handed out, cannot run here
}


def choices() -> list[tuple[str, Any]]:
    """Names and labels; a column's `choices` calls this, so a new task needs no migration."""
    return [*((task.name, task.label) for task in TASKS), *UNDESCRIBED.items()]
