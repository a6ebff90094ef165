"""Segmentation: a class for each pixel."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import SHAPES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="segmentation",
    label=_("Segmentation"),
    icon="image",
    data=(SHAPES,),
    needs=_("polygons, masks or boxes"),
    refusal=_("%(preset)s needs polygons, masks or boxes; %(version)s has: %(labels)s."),
    preset="segment",
    from_boxes=_("Boxes are used as ellipses."),
    figure=("val/miou", _("mIoU")),
)
