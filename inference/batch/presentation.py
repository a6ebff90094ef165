"""What the page of a prediction shows: figures, and pictures with what was found on them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.utils.translation import gettext_lazy

from inference.batch import results
from inference.batch.models import Prediction
from inference.kit.contracts.served_task import SHAPES
from inference.registry import class_colors, prediction_shapes
from inference.registry.prediction_cards import card
from workers.core.states import JobPhase

PER_PAGE = 12
MAX_BROKEN = 100  # named on the page; JSON lines have all
ERROR_LABELS = {
    "missing": gettext_lazy("The file does not exist any more."),
    "not_a_file": gettext_lazy("The path is not a file, or contains a link."),
    "unreadable": gettext_lazy("The file is damaged, too large, or not an image."),
}


def build_context(prediction: Prediction) -> dict[str, Any]:
    """Return counts and the first images, as far as they are predicted."""
    summary = results.load(prediction)
    job, total = prediction.job, summary.get("total") or prediction.total or 0
    if job.is_live and job.phase == JobPhase.PREDICTING and job.phase_done:  # ahead of the summary within a chunk
        summary["done"] = max(summary.get("done", 0), job.phase_done)
    by_id = colors_of(prediction)
    colors = {entry["name"]: by_id[entry["id"]] for entry in prediction.classes}
    return {
        "found": summary,
        "total": total,
        "classes": [row | {"color": colors.get(row.get("name", ""), "")} for row in summary.get("classes", [])[:12]],
        "more_classes": max(0, len(summary.get("classes", [])) - 12),
        "broken": [{**row, "word": why(row["code"])} for row in summary.get("left_out", [])[:MAX_BROKEN]],
        **page(prediction, 0),
    }


def page(prediction: Prediction, begin: int) -> dict[str, Any]:
    """Return cards of some predicted images, and where the next ones begin; None if there are no more."""
    good = (line for line in results.lines(prediction, begin=begin) if "error" not in line)
    lines = list(islice(good, PER_PAGE + 1))
    placed = prediction_shapes.draft_of(prediction.task) == SHAPES
    colors = colors_of(prediction)
    return {
        "cards": [card(line, colors, placed=placed) for line in lines[:PER_PAGE]],
        "next": lines[PER_PAGE]["n"] if len(lines) > PER_PAGE else None,
    }


def colors_of(prediction: Prediction) -> dict[int, str]:
    """Return the colors of the classes of its model."""
    trained_on = prediction.version.dataset_version if prediction.version else None
    return class_colors.for_classes(prediction.classes, trained_on, prediction.data)


def why(code: str) -> Any:
    """Why a picture has no answer."""
    return ERROR_LABELS.get(code, ERROR_LABELS["unreadable"])
