"""What ways to read a model, and the reasons why they fell out, are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from inference.registry import task_labels
from inference.registry.formats.declared import LAYOUTS, PIXEL_LABELS, Declared
from inference.registry.inspector import detection
from inference.registry.inspector.detection import Detection, Value

RESIZE_LABELS = {"stretch": gettext_lazy("stretched"), "letterbox": gettext_lazy("letterbox")}
NAMES_SHOWN = 8
FIELD_LABELS = {
    "task": gettext_lazy("Task"),
    "layout": gettext_lazy("Outputs"),
    "labels": gettext_lazy("Classes"),
    "size": gettext_lazy("Input size"),
    "width": gettext_lazy("Input width"),
    "height": gettext_lazy("Input height"),
    "pixels": gettext_lazy("Input values"),
    "resize": gettext_lazy("Resizing"),
}
SOURCE_LABELS = {
    detection.ENTERED: gettext_lazy("entered by you"),
    detection.FILE: gettext_lazy("from the file"),
    detection.SHAPES: gettext_lazy("from the shapes"),
    detection.USUAL: gettext_lazy("default"),
    detection.GUESS: gettext_lazy("guess"),
    detection.MISSING: gettext_lazy("missing"),
}
CHIPS = {detection.GUESS: "wait", detection.MISSING: "fail", detection.ENTERED: "run"}
WHY_LABELS = {
    "unreadable": gettext_lazy("the outputs could not be interpreted this way"),
    "does_not_run": gettext_lazy("the model did not run"),
    "no_numbers": gettext_lazy("the outputs contain no numbers"),
    "time": gettext_lazy("time limit reached"),
    "same": gettext_lazy("same predictions as one that is shown"),
    "worse": gettext_lazy("worse than those that are shown"),
    "nothing": gettext_lazy("no plausible predictions"),
}


def title(declaration: Declared) -> str:
    """Return the label of the layout."""
    layout = LAYOUTS[declaration.task].get(declaration.layout)
    return _(layout.label) if layout else declaration.layout


def describe(declaration: Declared) -> list[str]:
    """Return labels of the rest: task, pixels, resize, and the size where it was guessed or declared."""
    pixels = str(PIXEL_LABELS[declaration.pixels]) if declaration.pixels else _("as defined in the files")
    parts = [
        str(dict(task_labels.choices()).get(declaration.task, declaration.task)),
        _("pixels: %(pixels)s") % {"pixels": pixels},
        str(RESIZE_LABELS.get(declaration.resize, declaration.resize)),
    ]
    if declaration.width or declaration.height:
        parts.append(
            _("input %(width)s×%(height)s") % {"width": declaration.width or "?", "height": declaration.height or "?"}
        )
    return parts


def why(code: str) -> Any:
    """Why a way is not shown."""
    return WHY_LABELS.get(code, code)


def detected(result: Detection) -> list[dict[str, Any]]:
    """Return label, text, source and hue of each detected value."""
    task = next((row.value for row in result.values if row.field == "task"), "")
    rows = [
        {
            "label": FIELD_LABELS.get(row.field, row.field), "text": _text(row, task),
            "source": SOURCE_LABELS[row.source], "hue": CHIPS.get(row.source, "end"),
        }
        for row in result.values
    ]  # fmt: skip
    return rows or [_tensors()]


def detected_texts(result: Detection) -> dict[str, str]:
    """Return the texts of values that were not entered, by the fields that would replace them."""
    task = next((row.value for row in result.values if row.field == "task"), "")
    texts = {
        row.field: _text(row, task) for row in result.values if row.source not in (detection.ENTERED, detection.MISSING)
    }
    if size := texts.pop("size", ""):
        texts["width"], texts["height"] = size.split("×")
    return texts


def _tensors() -> dict[str, Any]:
    text = _("Unknown: the model accepts and returns tensors only")
    return {"label": FIELD_LABELS["layout"], "text": text, "source": SOURCE_LABELS[detection.SHAPES], "hue": "end"}


def _text(row: Value, task: str) -> str:
    if row.source == detection.MISSING:
        return "–"
    if row.field == "task":
        return str(dict(task_labels.choices()).get(row.value, row.value))
    if row.field == "layout":
        layout = LAYOUTS.get(task, {}).get(row.value)
        return _(layout.label) if layout else str(row.value)
    if row.field == "labels":
        return _class_text(row.value)
    if row.field == "pixels":
        return str(PIXEL_LABELS.get(row.value, _("mean and standard deviation of the file")))
    return str(RESIZE_LABELS.get(row.value, row.value)) if row.field == "resize" else str(row.value)


def _class_text(value: tuple[str, ...] | int) -> str:
    """Return the number of classes with the first names; numbered ones have none."""
    count = value if isinstance(value, int) else len(value)
    text = ngettext("%(count)s class", "%(count)s classes", count) % {"count": f"{count:,}"}
    if isinstance(value, int):
        return _("%(classes)s without names, numbered") % {"classes": text}
    names = ", ".join(value[:NAMES_SHOWN])
    return f"{text}: {names}{', …' if count > NAMES_SHOWN else ''}"


def described(contents: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what files define themselves, as `detected` does."""
    if not contents:
        return []
    entry = {"source": SOURCE_LABELS[detection.FILE], "hue": "end"}
    task = str(dict(task_labels.choices()).get(contents["task"], contents["task"]))
    rows = [entry | {"label": FIELD_LABELS["task"], "text": task}]
    if contents["classes"]:
        names = tuple(contents["names"]) + ("",) * (contents["classes"] - len(contents["names"]))
        rows.append(entry | {"label": FIELD_LABELS["labels"], "text": _class_text(names)})
    if size := contents.get("input"):
        rows.append(entry | {"label": FIELD_LABELS["size"], "text": f"{size['width']}×{size['height']}"})
    return rows
