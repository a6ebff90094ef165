"""Classification at work: the most probable classes, scored by scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.kit.contracts.served_task import (
    CLASSES,
    ClassMean,
    Figure,
    Measure,
    Pages,
    ServedTask,
    class_f1,
    class_precision,
    class_recall,
    once,
)
from inference.kit.task_kinds.classification.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("accuracy", "Accuracy", "Share of images whose top class is correct", manual="Accuracy"),
        Figure(
            "recall_5",
            "Recall_5",
            "Share of images with the correct class among the top five",
            manual="Recall_5",
            least_classes=6,
        ),
        Figure(
            "classification_loss",
            "Classification_Loss",
            "Mean cross-entropy of the predicted probabilities",
            manual="Classification_Loss",
        ),
        Figure("precision", "Precision", "Mean over classes", live=True, manual="Precision"),
        Figure("recall", "Recall", "Mean over classes", live=True, manual="Recall"),
        Figure("f1", "F1", "Mean over classes", live=True),
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
    note=(
        "Regularization_Loss and Total_Loss are not shown: they depend on the regularization used in training, "
        "which a model file does not contain. See the page of the training job."
    ),
    caption="inference/task_kinds/classification/_caption.html",
    try_script="inference/task_kinds/classification.js",
)


def _pairs(entry: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """Return the single pair of an image: its class, and the predicted one."""
    return [(int(truth), int(answer), 1) for truth, answer in (cell.split(",") for cell in entry["cells"])]


CLASSIFICATION = ServedTask(
    name="classification",
    data=(CLASSES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.classification.scoring",
    pages=PAGES,
    measures=(
        Measure("accuracy", "Accuracy", lambda entry: entry["right"], once),
        Measure(
            "recall_5", "Recall_5", lambda entry: entry["truth"] in [kind for kind, _share in entry["answers"]], once
        ),
        Measure(
            "classification_loss", "Classification_Loss", lambda entry: entry["badness"], once, lower_is_better=True
        ),
    ),
    pairs=_pairs,
    means=(
        ClassMean("precision", "Precision", class_precision),
        ClassMean("recall", "Recall", class_recall),
        ClassMean("f1", "F1", class_f1),
    ),
    right=lambda entry: bool(entry["right"]),
    scored=lambda entry: [(float(entry["answers"][0][1]), bool(entry["right"]))],
    elsewhere=("ForImageClassification", "classify"),
)
