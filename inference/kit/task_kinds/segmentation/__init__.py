"""Segmentation at work: a mask for each class, scored pixel by pixel."""

from __future__ import annotations

from inference.kit.contracts.served_task import (
    SHAPES,
    ClassMean,
    Figure,
    Measure,
    Pages,
    ServedTask,
    class_f1,
    class_iou,
    once,
)
from inference.kit.task_kinds.segmentation.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("miou", "mIoU", "Mean IoU over background and classes"),
        Figure("dice", "Dice", "Mean over background and classes"),
        Figure("pixel_accuracy", "Pixel accuracy", "Share of correctly classified pixels"),
    ),
    headline=("miou",),
    sections=(
        "inference/task_kinds/segmentation/_classes.html",
        "inference/results/_confusion.html",
        "inference/results/_images.html",
    ),
    script="inference/task_kinds/segmentation_evaluation.js",
    caption="inference/task_kinds/segmentation/_caption.html",
    overlay="inference/task_kinds/segmentation/_overlay.html",
    legend="inference/task_kinds/segmentation/_legend.html",
    try_script="inference/task_kinds/segmentation.js",
    try_controls="inference/task_kinds/segmentation/_try_controls.html",
    snippet='for found in answer.json()["predictions"]:\n'
    '    print(found["name"], found["share"], found["mask"])  # mask: COCO runs, for pycocotools.mask.decode',
)

SEGMENTATION = ServedTask(
    name="segmentation",
    data=(SHAPES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.segmentation.scoring",
    pages=PAGES,
    measures=(
        Measure(
            "pixel_accuracy",
            "Pixel accuracy",
            lambda entry: sum(count for truth, answer, count in entry["pairs"] if truth == answer),
            lambda entry: sum(count for _truth, _answer, count in entry["pairs"]),
        ),
        Measure("image_miou", "mIoU per image", lambda entry: entry["miou"], once),
        Measure("image_accuracy", "Pixel accuracy per image", lambda entry: entry["accuracy"], once),
    ),
    pairs=lambda entry: entry["pairs"],
    means=(ClassMean("miou", "mIoU", class_iou), ClassMean("dice", "Dice", class_f1)),
    elsewhere=("ForSemanticSegmentation",),
)
