"""Names and order of the figures people read."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

#: key of the summary → (word, what it means)
DETECTION = {
    "map": (_("mAP"), _("Average precision over overlaps of 0.50 to 0.95, as COCO has it")),
    "ap50": (_("AP50"), _("Average precision at an overlap of 0.50")),
    "ap75": (_("AP75"), _("Average precision at an overlap of 0.75")),
    "ar100": (_("AR100"), _("Average recall with at most 100 boxes per image")),
}
CLASSIFICATION = {
    "accuracy": (_("Accuracy"), _("Share of images whose most probable class is right")),
    "recall_5": (_("Recall_5"), _("Share of images whose class is among the five most probable")),
    "classification_loss": (_("Classification_Loss"), _("Mean cross-entropy of the probabilities")),
}


def tiles(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Summary tiles: [{"label", "help", "value"}], values as text."""
    chosen = DETECTION if found["task"] == "detection" else CLASSIFICATION
    summary = found["summary"]
    return [
        {"label": label, "help": help_text, "value": "–" if summary.get(key) is None else f"{summary[key]:.3f}"}
        for key, (label, help_text) in chosen.items()
    ]


def headline(task: str, metrics: dict[str, Any]) -> str:
    """The one figure a list shows: "AP50 0.912"."""
    for key, word in (("ap50", "AP50"), ("map", "mAP"), ("accuracy", "Accuracy")):
        for name in (key, f"val/{key}", f"test/{key}"):
            value = metrics.get(name)
            if isinstance(value, int | float):
                return f"{word} {value:.3f}"
    return ""
