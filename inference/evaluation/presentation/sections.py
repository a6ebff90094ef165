"""The parts of the page of an evaluation as tabs, in the order of the questions that users ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from inference.kit.contracts.served_task import Pages

THRESHOLD = "inference/results/_threshold.html"  # stays above the tabs, since all parts follow it
#: End of the name of a section of a task → tab; all others are shown on the first one.
TAB_NAMES = {
    "_classes.html": "classes",
    "_points.html": "classes",
    "_mistakes.html": "errors",
    "_images.html": "images",
}


@dataclass(frozen=True)
class Tab:
    """One tab: its name in the address, and the templates that it shows."""

    name: str
    label: Any
    sections: Sequence[str]


def tabs(pages: Pages, *, has_errors: bool, has_robustness: bool) -> list[Tab]:
    """Return the tabs of a task that have something to show."""
    sections: dict[str, list[str]] = {}
    for section in pages.sections:
        if section != THRESHOLD:
            name = next((tab for end, tab in TAB_NAMES.items() if section.endswith(end)), "overview")
            sections.setdefault(name, []).append(section)
    if not has_errors:
        sections.pop("errors", None)
    sections["slices"] = ["inference/results/_slices.html"]
    sections["calibration"] = ["inference/results/_calibration.html"]
    if has_robustness:
        sections["robustness"] = ["inference/results/_robustness.html"]
    return [Tab(name, label, sections[name]) for name, label in LABELS.items() if name in sections]


LABELS = {
    "overview": _("Overview"),
    "classes": _("Classes"),
    "errors": _("Error types"),
    "images": _("Images"),
    "slices": _("Slices"),
    "calibration": _("Confidence"),
    "robustness": _("Robustness"),
}
