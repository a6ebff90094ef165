"""Draft of a model card from what the platform knows of a version, until a user writes one."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from datasets.models import DatasetVersion
from inference.registry.metric_labels import metrics_by_class
from inference.registry.models import ModelVersion
from inference.registry.task_labels import choices

MAX_CLASSES = 20
MAX_LOWEST = 3


def draft(version: ModelVersion, data: DatasetVersion | None) -> dict[str, str]:
    """Return Markdown for the sections of a card by name; sections without known facts are missing.

    Args:
        data: the dataset version it was trained on, if the reader may see it.
    """
    sections = {"purpose": _purpose(version), "data": _data(version, data), "limits": _limits(version)}
    return {name: text for name, text in sections.items() if text}


def _purpose(version: ModelVersion) -> str:
    task = str(dict(choices()).get(version.task, version.task))
    names = [_escape(str(label.get("name"))) for label in version.classes]
    if not names:
        return _("%(task)s in images.") % {"task": task}
    listed = ", ".join(names[:MAX_CLASSES]) + (", …" if len(names) > MAX_CLASSES else "")
    text = ngettext(
        "%(task)s of %(count)s class in images: %(names)s.",
        "%(task)s of %(count)s classes in images: %(names)s.",
        len(names),
    )
    return text % {"task": task, "count": len(names), "names": listed}


def _data(version: ModelVersion, data: DatasetVersion | None) -> str:
    if not version.dataset_label:
        return ""
    name = _escape(version.dataset_label)
    if data is None:
        return _("Trained on %(data)s.") % {"data": name}
    text = ngettext(
        "Trained on %(data)s with %(count)s image%(splits)s.",
        "Trained on %(data)s with %(count)s images%(splits)s.",
        data.image_count,
    )
    splits = ", ".join(f"{split} {count:,}" for split, count in data.splits.items() if split)
    values = {"data": name, "count": f"{data.image_count:,}", "splits": f" ({splits})" if splits else ""}
    return text % values


def _limits(version: ModelVersion) -> str:
    table = metrics_by_class(version.task, version.metrics)
    if table is None or len(table.rows) < 2:
        return ""
    lowest = sorted(table.rows, key=lambda row: row[1])[:MAX_LOWEST]
    listed = ", ".join(f"{_escape(name)} ({value:.3f})" for name, value in lowest)
    return _("Lowest %(metric)s: %(classes)s.") % {"metric": table.name, "classes": listed}


def _escape(text: str) -> str:
    """A name in Markdown, with the signs that would mean something there."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in text)
