"""Embedding: like images near each other, so that the nearest known ones say what a new one is."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import CLASSES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="embedding",
    label=_("Similarity"),
    icon="compare",
    data=(CLASSES,),
    needs=_("one class per image"),
    refusal=_("%(preset)s needs one class per image; %(version)s has: %(labels)s."),
    preset="embed",
    figure=("val/recall_1", _("Recall@1")),
)
