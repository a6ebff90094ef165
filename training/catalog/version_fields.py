"""Choices among dataset versions in forms."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, ClassVar

from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from aiplatform.lib.row_choices import RowChoice, RowChoices
from aiplatform.lib.units import Count
from datasets.models import DatasetVersion

COLUMNS = ("dataset__name", "number", "image_count", "classes", "annotated", "task")


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

    columns: ClassVar[Iterable[str]] = COLUMNS

    def text_of(self, name: str, number: int, images: int, classes: list[str], annotated: bool, task: str) -> str:
        return _label(f"{name} v{number}", images, len(classes), task if annotated else "", get_language())


class VersionChoice(VersionLabels, RowChoice):
    """A choice of one version."""


class VersionChoices(VersionLabels, RowChoices):
    """A choice of several versions."""
