"""Anomaly detection: whether an image is unlike all good ones, and where."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from datasets.formats.neutral import CLASSES
from training.catalog.task_kinds.task import Task

TASK = Task(
    name="anomaly",
    label=_("Anomaly detection"),
    icon="search",
    data=(CLASSES,),
    needs=_("one class per image"),
    refusal=_("%(preset)s needs one class per image, one of them without defects; %(version)s has: %(labels)s."),
    preset="anomaly",
    figure=("val/auroc", _("AUROC")),
)
