"""Kinds of annotation that images of a version can carry, with their labels.

Kinds of annotations, not tasks: several tasks may learn from the same shapes, see training/catalog/task_kinds.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import CLASSES, NONE, SHAPES

LABELS: dict[str, Any] = {
    NONE: _("Not annotated"),
    SHAPES: _("Boxes and polygons"),
    CLASSES: _("One class per image"),
}


def choices() -> list[tuple[str, Any]]:
    """Names and labels; a column's `choices` calls this, so a new kind needs no migration."""
    return list(LABELS.items())
