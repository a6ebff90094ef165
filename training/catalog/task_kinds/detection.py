"""Detection: a box around each object."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import SHAPES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="detection",
    label=_("Detection"),
    icon="target",
    data=(SHAPES,),
    needs=_("boxes, polygons or masks"),
    refusal=_("%(preset)s needs boxes; %(version)s has: %(labels)s."),
    preset="detect",
    figure=("val/ap50", _("AP50")),
)
