"""Tagging: all classes that are on an image."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import SHAPES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="tagging",
    label=_("Tagging"),
    icon="list",
    data=(SHAPES,),
    needs=_("objects with classes"),
    refusal=_("%(preset)s needs objects, because their classes are the tags of an image; %(version)s has: %(labels)s."),
    preset="tag",
    figure=("val/map", _("mAP")),
)
