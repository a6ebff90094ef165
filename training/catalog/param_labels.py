"""Words and groups of the presets' parameters, for people. Scripts and files know them by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

#: Name of a parameter → its words; a new one stands under its name until it has some.
LABELS: Mapping[str, Any] = {
    "budget_minutes": _("Time budget"),
    "epochs": _("Epochs"),
    "steps": _("Optimizer steps"),
    "checkpoint_minutes": _("Checkpoint interval"),
    "eval_share": _("Evaluation interval"),
    "train_splits": _("Training splits"),
    "folds": _("Folds"),
    "fold": _("Evaluation fold"),
    "group_by": _("Image groups"),
    "eval_split": _("Evaluation split"),
    "width": _("Input width"),
    "height": _("Input height"),
    "resize": _("Resize mode"),
    "tile": _("Tile size"),
    "tile_overlap": _("Tile overlap"),
    "boxes": _("Objects with only a box"),
    "crop": _("Input region"),
    "margin": _("Box margin"),
    "pairs": _("Points that swap in a mirror image"),
    "architecture": _("Network"),
    "network": _("Your own network"),
    "net_width": _("Network width"),
    "teacher": _("Teacher"),
    "distill": _("Teacher weight"),
    "temperature": _("Teacher temperature"),
    "weights": _("Initial weights"),
    "frozen_blocks": _("Frozen blocks"),
    "frozen_stages": _("Frozen stages"),
    "frozen_filters": _("Frozen wide filters"),
    "strides": _("Feature maps"),
    "stride": _("Output stride"),
    "head_width": _("Head channels"),
    "head_depth": _("Head layers"),
    "center_radius": _("Center radius"),
    "batch_size": _("Batch size"),
    "lr": _("Learning rate"),
    "backbone_lr": _("Learning rate of pretrained layers"),
    "weight_decay": _("Weight decay"),
    "warmup": _("Warm-up"),
    "anneal": _("Learning rate schedule"),
    "patience": _("Patience"),
    "accumulate": _("Parts of a batch"),
    "ema": _("Model averaging (EMA)"),
    "dimensions": _("Embedding dimensions"),
    "arc_margin": _("Class margin"),
    "arc_scale": _("Class scale"),
    "gallery": _("Reference images in the model"),
    "whitening": _("Embedding whitening"),
    "label_smoothing": _("Label smoothing"),
    "dice": _("IoU loss weight"),
    "prototypes": _("Mask prototypes"),
    "mask_weight": _("Mask loss weight"),
    "seed": _("Random seed"),
    "flip": _("Horizontal flip"),
    "vertical_flip": _("Vertical flip"),
    "scale_jitter": _("Scale jitter"),
    "multi_scale": _("Multi-scale input"),
    "mosaic": _("Mosaic (RICAP)"),
    "turn": _("Rotation"),
    "light_jitter": _("Color jitter"),
    "shift": _("Translation"),
    "erase": _("Random erasing"),
    "colour_jitter": _("Color jitter"),
    "mixup": _("MixUp"),
    "cutmix": _("CutMix"),
    "class_weights": _("Class weights"),
    "iou_threshold": _("IoU threshold of NMS"),
    "score_threshold": _("Minimum confidence"),
    "good_class": _("Class without defects"),
    "bank_patches": _("Stored patches"),
    "cell": _("Cell size"),
    "layers": _("Levels per octave"),
    "window": _("Cells per object"),
    "rounds": _("Hard negative rounds"),
    "bins": _("Orientations"),
    "svm_cost": _("Regularization (C)"),
    "iterations": _("Iterations"),
    "flip_tta": _("Flip test-time augmentation"),
    "amp": _("Mixed precision"),
    "compile": _("Compilation"),
    "show_steps": _("Log every step"),
    "no_steps": _("No steps in the log"),
    "keep_ms": _("Pause after each step"),
}

#: Groups in the order of the form. What no group names stands in the last.
GROUPS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        _("Duration"),
        ("budget_minutes", "epochs", "steps", "patience", "iterations", "rounds", "checkpoint_minutes", "eval_share"),
    ),
    (
        _("Data"),
        (
            *("train_splits", "eval_split", "folds", "fold", "group_by", "width", "height", "resize"),
            *("tile", "tile_overlap", "boxes", "crop"),
            *("margin", "pairs", "good_class"),
        ),
    ),
    (
        _("Network"),
        (
            *("architecture", "network", "net_width", "weights", "frozen_blocks", "frozen_stages", "strides"),
            "head_width",
            *("head_depth", "center_radius", "stride", "frozen_filters", "cell", "bins", "bank_patches", "prototypes"),
            *("layers", "window"),
        ),
    ),
    (
        _("Optimization"),
        (
            "accumulate",
            *("batch_size", "lr", "backbone_lr", "weight_decay", "warmup", "anneal", "ema", "label_smoothing"),
            *("dice", "mask_weight", "svm_cost", "class_weights", "dimensions", "arc_margin", "arc_scale", "seed"),
            *("teacher", "distill", "temperature"),
        ),
    ),
    (
        _("Augmentation"),
        (
            *("flip", "vertical_flip", "scale_jitter", "turn", "light_jitter", "colour_jitter", "shift", "erase"),
            *("mosaic", "mixup", "cutmix", "multi_scale"),
        ),
    ),
    (_("Prediction"), ("iou_threshold", "score_threshold", "flip_tta", "gallery", "whitening")),
    (_("Compute"), ("amp", "compile", "show_steps", "no_steps", "keep_ms")),
)


def label(name: str) -> Any:
    return LABELS.get(name, name)


def group_of(name: str) -> int:
    """Return the index of a parameter's group in GROUPS."""
    return next((index for index, (_label, names) in enumerate(GROUPS) if name in names), len(GROUPS) - 1)
