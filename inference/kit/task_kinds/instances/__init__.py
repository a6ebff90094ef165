"""Instance segmentation at work: the outline of each object, scored as COCO scores masks."""

from __future__ import annotations

from inference.kit.contracts.served_task import LOSSES, SHAPES, Figure, Pages, ServedTask, average_precisions, counted
from inference.kit.task_kinds.instances.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure(
            "map",
            "Mask AP",
            "Average precision of the masks over IoU thresholds 0.50 to 0.95 (COCO)",
            manual="mAP",
        ),
        Figure("ap50", "Mask AP50", "Average precision of the masks at IoU 0.50"),
        Figure("ap75", "Mask AP75", "Average precision of the masks at IoU 0.75"),
        Figure("box_map", "Box AP", "Average precision of the boxes over IoU thresholds 0.50 to 0.95"),
        Figure("box_ap50", "Box AP50", "Average precision of the boxes at IoU 0.50"),
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
    note=LOSSES,
    curve_note="boxes, IoU 0.50",
    class_columns=(Figure("ap50", "Mask AP50"), Figure("box_ap50", "Box AP50")),
    caption="inference/task_kinds/instances/_caption.html",
    overlay="inference/task_kinds/instances/_overlay.html",
    legend="inference/task_kinds/instances/_legend.html",
    try_script="inference/task_kinds/instances.js",
    try_controls="inference/task_kinds/instances/_try_controls.html",
    threshold=True,
    snippet='for found in answer.json()["predictions"]:\n'
    '    print(found["name"], found["score"], found["polygon"])  # rings: [[x, y, x, y, ...], ...] in pixels',
)

INSTANCES = ServedTask(
    name="instances",
    data=(SHAPES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.instances.scoring",
    pages=PAGES,
    measures=counted(),
    ranked=average_precisions("Mask AP", "Mask AP50", "Mask AP75"),
    right=lambda entry: not entry["fp"] and not entry["fn"],
)
