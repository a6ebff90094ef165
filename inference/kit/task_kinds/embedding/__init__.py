"""Embedding at work: the nearest known images of a picture, scored by how often the nearest are of its class."""

from __future__ import annotations

from inference.kit.contracts.served_task import CLASSES, Figure, Measure, Pages, ServedTask, once
from inference.kit.task_kinds.embedding.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("recall_1", "Recall@1", "Share of images whose nearest other image has the same class"),
        Figure("recall_5", "Recall@5", "Share of images with an image of the same class among the five nearest"),
        Figure("map_r", "MAP@R", "Mean precision among as many nearest images as the class has other images"),
        Figure("knn_accuracy", "kNN accuracy", "Share of images with the correct class by the reference images"),
    ),
    headline=("recall_1",),
    sections=(
        "inference/task_kinds/embedding/_classes.html",
        "inference/results/_confusion.html",
        "inference/results/_images.html",
    ),
    script="inference/task_kinds/embedding_evaluation.js",
    caption="inference/task_kinds/embedding/_caption.html",
    try_script="inference/task_kinds/embedding.js",
    snippet='found = answer.json()["predictions"][0]  # add ?neighbours=20 for more of the nearest known images\n'
    'print(found["name"], found["score"], len(found["vector"]))\n'
    'for near in found["neighbours"]:\n'
    '    print(near["name"], near["image"], near["similarity"])',
)

EMBEDDING = ServedTask(
    name="embedding",
    data=(CLASSES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.embedding.scoring",
    pages=PAGES,
    measures=(
        Measure("recall_1", "Recall@1", lambda entry: entry["nearest_right"], lambda entry: entry["has_others"]),
        Measure("knn_accuracy", "kNN accuracy", lambda entry: entry["right"], once),
    ),
    right=lambda entry: bool(entry["nearest_right"]),
)
