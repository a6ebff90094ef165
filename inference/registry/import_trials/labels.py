"""What ways to read a model, and the reasons why they fell out, are called."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.registry import task_labels
from inference.registry.formats.declared import LAYOUTS, PIXEL_LABELS, Declared

RESIZE_LABELS = {"stretch": gettext_lazy("stretched"), "letterbox": gettext_lazy("letterbox")}
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
