"""Detection at work: boxes, scored as COCO does."""

from __future__ import annotations

from inference.kit.contracts.served_task import (
    LOSSES,
    SHAPES,
    Figure,
    Pages,
    ServedTask,
    average_precisions,
    counted,
    ranked_answers,
)
from inference.kit.task_kinds.detection.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("map", "mAP", "Average precision over IoU thresholds 0.50 to 0.95 (COCO)", manual="mAP"),
        Figure("ap50", "AP50", "Average precision at IoU 0.50"),
        Figure("ap75", "AP75", "Average precision at IoU 0.75"),
        Figure("ar100", "AR100", "Average recall with at most 100 boxes per image"),
        Figure("precision", "Precision", "Mean over classes", live=True),
        Figure("recall", "Recall", "Mean over classes", live=True),
        Figure("f1", "F1", "Mean over classes", live=True),
    ),
    headline=("ap50", "map"),
    sections=(
        "inference/results/_threshold.html",
        "inference/results/_curves.html",
        "inference/results/_classes.html",
        "inference/results/_confusion.html",
        "inference/results/_mistakes.html",
        "inference/results/_images.html",
    ),
    script="inference/evaluation.js",
    curve_note="IoU 0.50",
    note=LOSSES,
    class_columns=(Figure("ap50", "AP50"), Figure("ap75", "AP75")),
    caption="inference/task_kinds/detection/_caption.html",
    overlay="inference/task_kinds/detection/_overlay.html",
    legend="inference/task_kinds/detection/_legend.html",
    try_script="inference/task_kinds/detection.js",
    try_controls="inference/task_kinds/detection/_try_controls.html",
    threshold=True,
)

DETECTION = ServedTask(
    name="detection",
    data=(SHAPES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.detection.scoring",
    pages=PAGES,
    measures=counted(),
    ranked=average_precisions("mAP", "AP50", "AP75"),
    right=lambda entry: not entry["fp"] and not entry["fn"],
    scored=ranked_answers,
    elsewhere=("ForObjectDetection", "detect"),
)
