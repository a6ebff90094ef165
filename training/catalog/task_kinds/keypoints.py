"""Keypoints: where the named points of an object are."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats import writer
from datasets.formats.neutral import SHAPES
from datasets.models import DatasetVersion
from training.catalog.task_kinds.task import Task


def _names_points(version: DatasetVersion) -> bool:
    """Whether a class of the version says what its points are called."""
    return any(entry.get("keypoints") for entry in writer.written_classes(version.path))


TASK = Task(
    name="keypoints",
    label=_("Keypoints"),
    icon="person",
    data=(SHAPES,),
    needs=_("keypoints"),
    refusal=_(
        "%(preset)s needs keypoints, and no class of %(version)s has any. Import a COCO file with keypoint "
        "names and keypoints of objects."
    ),
    preset="keypoints",
    figure=("val/pck05", _("PCK@0.05")),
    carries=_names_points,
)
