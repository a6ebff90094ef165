"""How sure the loss of a variant is: its interval, from the images on which both were judged."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from inference.conversion.converter import variant_catalog
from inference.evaluation import differences, resampling
from inference.kit.task_kinds import TASKS

log = logging.getLogger(__name__)
Entries = dict[str, dict[str, Any]]


def loss_intervals(
    outputs: Path, document: Mapping[str, Any], task: str, *, seed: int
) -> dict[str, tuple[float, float]]:
    """Return variant → the ends of the middle 95 % of its loss when the images are resampled (paired bootstrap).

    Variants are left out whose images are not there any more, or were fewer than 30: of so few the interval comes out
    too narrow.

    Args:
        outputs: of the attempt; `found`: its table, see `results.read`.
    """
    source = _entries(outputs, variant_catalog.SOURCE)
    intervals: dict[str, tuple[float, float]] = {}
    for row in document["rows"]:
        name = row["target"]
        if name == variant_catalog.SOURCE or row["state"] == variant_catalog.FAILED:
            continue
        try:
            ends = _interval(source, _entries(outputs, name), task, document["metric"], seed)
        except differences.BROKEN as exc:  # outputs of a job may hold anything
            log.warning("conversion=%s %s has no interval: %r", seed, name, exc)
            continue
        if ends is not None:
            intervals[name] = ends
    return intervals


def _interval(source: Entries, variant: Entries, task: str, metric: str, seed: int) -> tuple[float, float] | None:
    if len(source) < differences.MIN_IMAGES or source.keys() != variant.keys():
        return None
    order = sorted(source)
    scored = resampling.score(TASKS[task], [[side[path] for path in order] for side in (source, variant)], seed=[seed])
    row = next((row for row in scored if row.figure.key == metric), None)
    if row is None:
        return None
    sign = 1 if row.figure.lower_is_better else -1
    low, high = resampling.interval(sign * (row.drawn[:, 1] - row.drawn[:, 0]))
    return None if low is None or high is None else (round(low, 6), round(high, 6))


def _entries(outputs: Path, name: str) -> Entries:
    """Entries of the images of a variant by path; {} where they are not there."""
    try:
        with os.fdopen(files.open_beneath(outputs, f"targets/{name}/images.jsonl"), "rb") as file:
            rows = [json.loads(line) for line, _number in zip(file, range(differences.MAX_IMAGES + 1), strict=False)]
        return {str(entry["path"]): differences.light(entry) for entry in rows}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, files.OutsideRoot):
        return {}
