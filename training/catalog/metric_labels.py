"""What the figures of trainings are called: keys are for scripts, these words for people.

The curves say the same in scripts (workers/static/workers/figures.js).
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

LABELS: dict[str, Any] = {
    "train/loss": _("Training loss"),
    "val/loss": _("Validation loss"),
    "train/accuracy": _("Accuracy in training"),
    "val/accuracy": _("Accuracy on validation"),
    "test/accuracy": _("Accuracy on test"),
    "val/ap": _("AP on validation"),
    "val/ap50": _("AP50 on validation"),
    "val/ap75": _("AP75 on validation"),
    "val/miou": _("mIoU on validation"),
    "val/iou": _("IoU on validation"),
    "val/pixel_accuracy": _("Pixel accuracy on validation"),
    "val/mask_ap": _("Mask AP on validation"),
    "val/mask_ap50": _("Mask AP50 on validation"),
    "val/mask_ap75": _("Mask AP75 on validation"),
    "val/balanced_accuracy": _("Mean class accuracy on validation"),
    "val/macro_f1": _("Mean class F1 on validation"),
    "val/map": _("Mean average precision on validation"),
    "val/auroc": _("AUROC on validation"),
    "val/f1": _("F1 on validation"),
    "val/good_score": _("Score of good images on validation"),
    "val/nme": _("NME on validation"),
    "val/pck05": _("PCK@0.05 on validation"),
    "val/pck10": _("PCK@0.1 on validation"),
    "val/class_accuracy": _("Class accuracy on validation"),
    "val/recall_1": _("Recall@1 on validation"),
    "val/recall_5": _("Recall@5 on validation"),
    "val/map_r": _("MAP@R on validation"),
    "val/knn_accuracy": _("kNN accuracy on validation"),
    "test/recall_1": _("Recall@1 on test"),
    "test/nme": _("NME on test"),
    "test/pck05": _("PCK@0.05 on test"),
    "test/miou": _("mIoU on test"),
    "test/pixel_accuracy": _("Pixel accuracy on test"),
    "steps": _("Optimizer steps completed"),
    "steps_planned": _("Planned optimizer steps"),
    "epochs": _("Epochs completed"),
    "seconds": _("Duration (s)"),
    "eval_seconds": _("Evaluation time (s)"),
    "checkpoint_seconds": _("Checkpoint time (s)"),
    "checkpoint_share": _("Share of checkpoint time"),
    "slowdown": _("Slowdown compared with idle cores"),
    "weights_taken": _("Tensors loaded"),
    "weights_of": _("Tensors of the network"),
    "test/ap": _("AP on test"),
    "test/ap50": _("AP50 on test"),
    "test/ap75": _("AP75 on test"),
    "train/lr": _("Learning rate"),
    "train/step_ms": _("Step time (ms)"),
    "train/box": _("Box loss in training"),
    "train/class": _("Class loss in training"),
    "train/fit": _("Box fit loss in training"),
    "train/mask": _("Mask loss in training"),
    "train/soft": _("Distillation loss in training"),
    "train/soft_loss": _("Distillation loss in training"),
    "train/pixel_loss": _("Pixel loss in training"),
    "train/dice_loss": _("Dice loss in training"),
    "train/map_loss": _("Map loss in training"),
    "train/point_loss": _("Point loss in training"),
    "train/presence_loss": _("Presence loss in training"),
    "train/class_loss": _("Class loss in training"),
    "train/arc_loss": _("ArcFace loss in training"),
    "epoch": _("Epoch"),
}


#: Metrics of evaluations and common names of scripts, for keys that `LABELS` does not hold whole.
METRICS: dict[str, Any] = {
    "loss": _("Loss"),
    "accuracy": _("Accuracy"),
    "precision": _("Precision"),
    "recall": _("Recall"),
    "f1": "F1",
    "map": "mAP",
    "ap": "AP",
    "ap50": "AP50",
    "ap75": "AP75",
    "ap_small": _("AP of small objects"),
    "ap_medium": _("AP of medium objects"),
    "ap_large": _("AP of large objects"),
    "ar1": "AR1",
    "ar10": "AR10",
    "ar100": "AR100",
    "miou": "mIoU",
    "auroc": "AUROC",
    "threshold": _("Confidence threshold"),
}
SPLITS: dict[str, Any] = {
    "train": _("%(metric)s in training"),
    "val": _("%(metric)s on validation"),
    "test": _("%(metric)s on test"),
}


def word(key: str) -> str:
    """ "val/ap50" → "AP50 on validation", "val/ap50/cell" → "AP50 on validation: cell"; others as their code says."""
    if key in LABELS:
        return str(LABELS[key])
    figure, _slash, part = key.rpartition("/")
    if figure in LABELS:
        return f"{LABELS[figure]}: {part}"
    if figure in SPLITS and part in METRICS:
        return str(SPLITS[figure]) % {"metric": METRICS[part]}
    return key


def is_part(key: str) -> bool:
    """Whether a key is the value of one class of a metric: "val/ap50/cell"."""
    return key not in LABELS and key.rpartition("/")[0] in LABELS
