"""Classification: one of several classes for each image."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import CLASSES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="classification",
    label=_("Classification"),
    icon="tag",
    data=(CLASSES,),
    needs=_("one class per image"),
    refusal=_("%(preset)s needs one class per image; %(version)s has: %(labels)s."),
    preset="classify",
    figure=("val/accuracy", _("Accuracy")),
)
