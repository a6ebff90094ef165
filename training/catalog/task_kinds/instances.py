"""Instance segmentation: the outline of each object."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import SHAPES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="instances",
    label=_("Instance segmentation"),
    icon="polygon",
    data=(SHAPES,),
    needs=_("polygons, masks or boxes"),
    refusal=_("%(preset)s needs polygons, masks or boxes; %(version)s has: %(labels)s."),
    preset="instances",
    from_boxes=_("Boxes are used as ellipses."),
    figure=("val/mask_ap50", _("Mask AP50")),
)
