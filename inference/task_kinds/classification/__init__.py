"""Classification at work: the most probable classes, scored by scikit-learn."""

from __future__ import annotations

from inference.task_kinds.classification.answer import ANSWER
from inference.task_kinds.served import CLASSES, Figure, Measure, Pages, ServedTask, once

PAGES = Pages(
    figures=(
        Figure("accuracy", "Accuracy", "Share of images whose most probable class is right"),
        Figure("recall_5", "Recall_5", "Share of images whose class is among the five most probable"),
        Figure("classification_loss", "Classification_Loss", "Mean cross-entropy of the probabilities"),
        Figure("precision", "Precision", "Mean over the classes", live=True),
        Figure("recall", "Recall", "Mean over the classes", live=True),
        Figure("f1", "F1", "Mean over the classes", live=True),
    ),
    headline=("accuracy",),
    sections=(
        "inference/results/_threshold.html",
        "inference/results/_curves.html",
        "inference/results/_classes.html",
        "inference/results/_confusion.html",
        "inference/results/_images.html",
    ),
    script="inference/evaluation.js",
    counted="Images",
    caption="inference/task_kinds/classification/_caption.html",
    try_script="inference/task_kinds/classification.js",
)

CLASSIFICATION = ServedTask(
    name="classification",
    data=(CLASSES,),
    answer=ANSWER,
    scoring="inference.task_kinds.classification.scoring",
    pages=PAGES,
    measures=(Measure("accuracy", "Accuracy", lambda one: one["right"], once),),
    right=lambda one: bool(one["right"]),
)
