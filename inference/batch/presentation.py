"""What the page of a prediction shows: figures, and pictures with what was found on them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.utils.translation import gettext_lazy

from inference.batch import results
from inference.batch.models import Prediction
from inference.kit.contracts.served_task import SHAPES
from inference.registry import prediction_shapes
from inference.registry.prediction_cards import card

PER_PAGE = 12
MOST_BROKEN = 100  # named on the page; JSON lines have all
ERROR_WORDS = {
    "missing": gettext_lazy("It is gone."),
    "not_a_file": gettext_lazy("It is no file, or a link leads to it."),
    "unreadable": gettext_lazy("It is damaged, too large, or no picture."),
}


def of(prediction: Prediction) -> dict[str, Any]:
    """Figures and the first pictures, as far as it has come."""
    found = results.load(prediction)
    total = found.get("total") or prediction.total or 0
    return {
        "found": found,
        "total": total,
        "share": min(1.0, found.get("done", 0) / total) if total else 0.0,
        "classes": found.get("classes", [])[:12],
        "more_classes": max(0, len(found.get("classes", [])) - 12),
        "broken": [{**row, "word": why(row["code"])} for row in found.get("left_out", [])[:MOST_BROKEN]],
        **page(prediction, 0),
    }


def page(prediction: Prediction, begin: int) -> dict[str, Any]:
    """Cards of some pictures that have an answer, and where the next ones begin; None where there are none."""
    good = (line for line in results.lines(prediction, begin=begin) if "error" not in line)
    some = list(islice(good, PER_PAGE + 1))
    placed = prediction_shapes.draft_of(prediction.task) == SHAPES
    places = {entry["id"]: place for place, entry in enumerate(prediction.classes)}
    return {
        "cards": [card(line, places, placed=placed) for line in some[:PER_PAGE]],
        "next": some[PER_PAGE]["n"] if len(some) > PER_PAGE else None,
    }


def why(code: str) -> Any:
    """Why a picture has no answer."""
    return ERROR_WORDS.get(code, ERROR_WORDS["unreadable"])
