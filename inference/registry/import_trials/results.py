"""Read what the program of a trial left, as far as it is sound: whoever made the model may have written it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from inference.registry.prediction_lines import word

NAME, PICTURES = "tried.json", "pictures"
MAX_BYTES = 32 << 20
MAX_SHOWN, MAX_PREDICTIONS, MAX_IMAGES, MAX_GROUND_TRUTHS = 8, 50, 6, 300
MAX_SIDE = 1280
CODES = ("unreadable", "does_not_run", "no_numbers", "time", "same", "worse", "nothing")
Row = dict[str, Any]


@dataclass(frozen=True)
class RankedVariant:
    """One of the best ways: its place among all, its figures (0..1), and the answers to each picture."""

    number: int
    score: float
    sure: float
    answers: list[list[Row]]


@dataclass(frozen=True)
class TrialResult:
    """What came of a trial. `pictures` have name, width, height, label and truth, the boxes known to be there."""

    pictures: list[Row] = field(default_factory=list)
    best: list[RankedVariant] = field(default_factory=list)
    fallen: dict[int, str] = field(default_factory=dict)
    with_truth: bool = False
    tried: int = 0

    def counts(self) -> dict[str, int]:
        """How many ways fell out for each reason."""
        return dict(Counter(self.fallen.values()))


def read(outputs: Path, *, ways: int) -> TrialResult:
    """Read the result in the outputs of an attempt; empty if it is invalid.

    Args:
        ways: how many were tried.
    """
    try:
        with os.fdopen(files.open_beneath(outputs, NAME), "rb") as file:
            document = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError, files.OutsideRoot):
        return TrialResult()
    if not isinstance(document, dict):
        return TrialResult()
    pictures = [_picture(row) for row in _rows(document.get("pictures"))[:MAX_IMAGES]]
    best = [_read_variant(row, len(pictures)) for row in _rows(document.get("best"))[:MAX_SHOWN]]
    fallen = {_to_int(row.get("n")): word(row.get("code"), 20) for row in _rows(document.get("fallen"))[:ways]}
    first = {variant.number: variant for variant in reversed(best)}
    unique = [variant for variant in best if 0 <= variant.number < ways and first[variant.number] is variant]
    return TrialResult(
        pictures,
        unique if pictures else [],
        {number: code for number, code in fallen.items() if code in CODES and 0 <= number < ways},
        document.get("with_truth") is True,
        _to_int(document.get("tried")),
    )


def picture(outputs: Path, index: int) -> int:
    """Open one of the small images and return its descriptor.

    Raises:
        OSError, OutsideRoot: there is none.
    """
    return files.open_beneath(outputs, f"{PICTURES}/{index}.jpg")


def _picture(row: Row) -> Row:
    width, height = (min(max(_to_int(row.get(side)), 1), MAX_SIDE) for side in ("width", "height"))
    truth = [{"name": word(item.get("name"), 200), "box": item.get("box")} for item in _rows(row.get("truth"))]
    return {
        "name": word(row.get("name"), 200), "width": width, "height": height, "label": word(row.get("label"), 200),
        "truth": truth[:MAX_GROUND_TRUTHS],
    }  # fmt: skip


def _read_variant(row: Row, pictures: int) -> RankedVariant:
    values = row.get("answers")
    answers = (
        [_rows(predictions)[:MAX_PREDICTIONS] for predictions in values[:pictures]] if isinstance(values, list) else []
    )
    answers += [[] for _missing in range(pictures - len(answers))]
    return RankedVariant(_to_int(row.get("n"), -1), _share(row.get("score")), _share(row.get("sure")), answers)


def _share(value: Any) -> float:
    return min(max(finite(value) or 0.0, 0.0), 1.0)


def _to_int(value: Any, default: int = 0) -> int:
    number = finite(value)
    return default if number is None else int(min(max(number, -1), 2**31 - 1))


def _rows(value: Any) -> list[Row]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []  # type: ignore[misc]  # JSON's tables are dicts
