"""Tagging at work: the classes that are on a picture, each judged by itself."""

from __future__ import annotations

from inference.task_kinds.served import SHAPES, Figure, Pages, ServedTask
from inference.task_kinds.tagging.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("map", "mAP", "Mean over the classes of the average precision of their scores"),
        Figure("exact", "Exact matches", "Share of images whose tags are all right and complete"),
        Figure("precision", "Precision", "Mean over the classes", live=True),
        Figure("recall", "Recall", "Mean over the classes", live=True),
        Figure("f1", "F1", "Mean over the classes", live=True),
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

TAGGING = ServedTask(
    name="tagging",
    data=(SHAPES,),
    answer=ANSWER,
    scoring="inference.task_kinds.tagging.scoring",
    pages=PAGES,
)
