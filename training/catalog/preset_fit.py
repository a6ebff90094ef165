"""Which presets can learn from a dataset version, and why others cannot: one rule for pages and API."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.formats.neutral import CLASSES, SHAPES
from datasets.models import Asset, DatasetVersion
from datasets.shapes.box import BOX
from training.catalog.task_kinds import TASKS, preset_for
from training.presets.catalog import PRESETS
from training.presets.preset import Preset

SAMPLED_IMAGES = 100  # with objects, to tell boxes from outlines
WITHOUT_SHAPES = {CLASSES: gettext_lazy("one class per image")}


@dataclass(frozen=True)
class PresetFit:
    """A preset and a version: `reason` is why it cannot learn from it, `note` how it reads its annotations."""

    preset: Preset
    reason: str = ""
    note: str = ""


@dataclass(frozen=True)
class Offer:
    """Presets for a version: those that fit, the recommended one first, and the others with their reasons."""

    fitting: list[PresetFit]
    others: list[PresetFit] = field(default_factory=list)

    def fits(self, name: str) -> bool:
        return any(fit.preset.name == name for fit in self.fitting)


def can_learn(preset: Preset, version: DatasetVersion) -> bool:
    """Whether the preset can learn from the annotations of an annotated version."""
    return TASKS.get(preset.task).can_learn(version)


def offer_for(version: DatasetVersion | None) -> Offer:
    """Return which presets fit a version; without one all presets fit."""
    if version is None:
        return Offer([PresetFit(preset) for preset in PRESETS.values()])
    labels, boxes_only = _labels_of(version)
    recommended = preset_for(version)
    fitting, others = [], []
    for preset in PRESETS.values():
        task = TASKS.get(preset.task)
        if version.annotated and can_learn(preset, version):
            fitting.append(PresetFit(preset, note=str(task.from_boxes) if boxes_only else ""))
        else:
            facts = {"needs": task.needs or task.label, "labels": labels}
            others.append(PresetFit(preset, reason=_("Needs %(needs)s; this version has %(labels)s.") % facts))
    fitting.sort(key=lambda fit: (fit.preset.name != recommended, bool(fit.note)))
    return Offer(fitting, others)


def _labels_of(version: DatasetVersion) -> tuple[str, bool]:
    """Return the annotations of a version as a noun phrase, and whether all of its objects are boxes."""
    if not version.annotated or version.task not in (*WITHOUT_SHAPES, SHAPES):
        return _("no annotations"), False
    if version.task != SHAPES:
        return str(WITHOUT_SHAPES[version.task]), False
    rows = Asset.objects.filter(version=version, content=Asset.Content.OBJECTS).order_by("pk")
    kinds = {shape[1] for shapes in rows.values_list("shapes", flat=True)[:SAMPLED_IMAGES] for shape in shapes}
    if kinds == {BOX.name}:
        return _("boxes only"), True
    return (_("boxes and outlines") if BOX.name in kinds else _("outlines")) if kinds else _("no objects"), False
