"""Choices among dataset versions in forms."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from django import forms
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from aiplatform.lib.units import Count
from datasets.models import DatasetVersion
from training.task_kinds import preset_for


@cache
def _task_labels() -> dict[str, Any]:
    """Words of the tasks; `get_task_display` builds this table for each row."""
    return dict(DatasetVersion._meta.get_field("task").flatchoices)


@lru_cache(maxsize=4096)
def _label(name: str, images: int, classes: int, task: str, _language: str | None) -> str:
    """Return the words of one option; pages with a hundred of them ask again and again."""
    parts = (
        name,
        ngettext("%(n)s image", "%(n)s images", images) % {"n": Count(images)},
        ngettext("%(n)s class", "%(n)s classes", classes) % {"n": Count(classes)},
        str(_task_labels().get(task, task)) if task else _("not annotated"),
    )
    return " · ".join(parts)


class VersionLabels:
    """Labels of a choice among versions: what each holds."""

    def label_from_instance(self, obj: Any) -> str:
        task = obj.task if obj.annotated else ""
        return _label(str(obj), obj.image_count, len(obj.classes), task, get_language())


class VersionChoice(VersionLabels, forms.ModelChoiceField):
    """A choice of one version."""


class VersionChoices(VersionLabels, forms.ModelMultipleChoiceField):
    """A choice of several versions."""


class VersionSelect(forms.Select):
    """Options carry the preset that suits their data, so the page can pick it, or that only own code can use them."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if getattr(value, "instance", None) is not None:
            option["attrs"]["data-preset"] = preset_for(value.instance)
            if not value.instance.annotated:
                option["attrs"]["data-raw"] = ""
        return option
