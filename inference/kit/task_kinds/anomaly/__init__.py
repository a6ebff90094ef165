"""Anomaly detection at work: a score, a verdict and a heat map for each picture."""

from __future__ import annotations

from inference.kit.contracts.served_task import CLASSES, Figure, Measure, Pages, ServedTask, once
from inference.kit.task_kinds.anomaly.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure(
            "auroc",
            "AUROC",
            "Share of pairs of a defective and a good image in which the defective one has the higher score",
        ),
        Figure("average_precision", "Average precision", "Area under the precision-recall curve"),
        Figure("f1", "F1", "For defective images at the threshold of the model"),
        Figure("precision", "Precision", "Share of the reported images that are defective"),
        Figure("recall", "Recall", "Share of the defective images that are reported"),
        Figure("good_share", "Good images accepted", "Share of the good images that are not reported"),
    ),
    headline=("auroc", "good_share"),
    sections=(
        "inference/task_kinds/anomaly/_classes.html",
        "inference/results/_confusion.html",
        "inference/results/_images.html",
    ),
    script="inference/task_kinds/anomaly_evaluation.js",
    caption="inference/task_kinds/anomaly/_caption.html",
    overlay="inference/task_kinds/anomaly/_overlay.html",
    try_script="inference/task_kinds/anomaly.js",
    try_controls="inference/task_kinds/anomaly/_try_controls.html",
    snippet='for found in answer.json()["predictions"]:\n'
    '    print(found["anomalous"], found["score"])  # found["heat"]: a grey PNG in base64',
)

ANOMALY = ServedTask(
    name="anomaly",
    data=(CLASSES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.anomaly.scoring",
    pages=PAGES,
    strangers=True,
    measures=(Measure("accuracy", "Accuracy", lambda entry: entry["right"], once),),
    right=lambda entry: bool(entry["right"]),
)
