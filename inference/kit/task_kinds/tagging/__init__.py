"""Tagging at work: the classes that are on a picture, each judged by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.kit.contracts.served_task import SHAPES, Figure, Measure, Pages, ServedTask, once
from inference.kit.task_kinds.tagging.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("map", "mAP", "Mean over the classes of the average precision"),
        Figure("exact", "Exact matches", "Share of images with exactly the correct tags"),
        Figure("precision", "Precision", "Mean over classes", live=True),
        Figure("recall", "Recall", "Mean over classes", live=True),
        Figure("f1", "F1", "Mean over classes", live=True),
    ),
    headline=("map", "f1"),
    sections=(
        "inference/results/_threshold.html",
        "inference/results/_curves.html",
        "inference/results/_classes.html",
        "inference/results/_confusion.html",
        "inference/results/_images.html",
    ),
    script="inference/evaluation.js",
    counted="Images",
    caption="inference/task_kinds/tagging/_caption.html",
    try_script="inference/task_kinds/tagging.js",
    try_controls="inference/task_kinds/tagging/_try_controls.html",
    snippet='for tag in answer.json()["predictions"]:\n'
    '    if tag["present"]:\n        print(tag["name"], tag["score"])',
)


def _hits(entry: Mapping[str, Any]) -> int:
    """Count the predicted tags that are right."""
    return sum(bool(there) for _class, _score, there in entry["answers"])


def _is_exact(entry: Mapping[str, Any]) -> bool:
    return not entry["missed"] and all(there for _class, _score, there in entry["answers"])


TAGGING = ServedTask(
    name="tagging",
    data=(SHAPES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.tagging.scoring",
    pages=PAGES,
    measures=(
        Measure("exact", "Exact matches", lambda entry: float(_is_exact(entry)), once),
        Measure("hits", "Correct tags of those predicted", _hits, lambda entry: len(entry["answers"])),
        Measure("found", "Tags found", _hits, lambda entry: _hits(entry) + len(entry["missed"])),
    ),
    right=_is_exact,
    elsewhere=("multi_label_classification",),
)
