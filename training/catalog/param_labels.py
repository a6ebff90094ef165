"""Words and groups of the presets' parameters, for people. Scripts and files know them by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

#: Name of a parameter → its words; a new one stands under its name until it has some.
LABELS: Mapping[str, Any] = {
    "budget_minutes": _("Time budget"),
    "epochs": _("Passes over the data"),
    "steps": _("Optimizer steps"),
    "checkpoint_minutes": _("Time between checkpoints"),
    "eval_share": _("Time for scoring"),
    "train_splits": _("Splits to learn from"),
    "folds": _("Folds"),
    "fold": _("Fold to score on"),
    "group_by": _("Images that stay together"),
    "eval_split": _("Split to score on"),
    "width": _("Input width"),
    "height": _("Input height"),
    "resize": _("Fitting of other shapes"),
    "tile": _("Side of a tile"),
    "tile_overlap": _("Overlap of tiles"),
    "boxes": _("Objects with only a box"),
    "crop": _("Part that is looked at"),
    "margin": _("Margin around boxes"),
    "pairs": _("Points that change places in a mirror image"),
    "architecture": _("Network"),
    "network": _("Your own network"),
    "net_width": _("Width of the network"),
    "teacher": _("Teacher"),
    "distill": _("Weight of the teacher"),
    "temperature": _("Softening of the teacher"),
    "weights": _("Weights to start from"),
    "frozen_blocks": _("Frozen blocks"),
    "frozen_stages": _("Frozen stages"),
    "frozen_filters": _("Frozen wide filters"),
    "strides": _("Feature maps"),
    "stride": _("Input pixels to one of the answer"),
    "head_width": _("Channels of the heads"),
    "head_depth": _("Layers of the heads"),
    "center_radius": _("Radius around centres"),
    "batch_size": _("Batch size"),
    "lr": _("Learning rate"),
    "backbone_lr": _("Learning rate of pretrained layers"),
    "weight_decay": _("Weight decay"),
    "warmup": _("Warm-up"),
    "anneal": _("Decline of the learning rate"),
    "patience": _("Patience"),
    "accumulate": _("Parts of a batch"),
    "ema": _("Averaging of the model"),
    "dimensions": _("Numbers of an embedding"),
    "arc_margin": _("Margin between classes"),
    "arc_scale": _("Sharpness of the classes"),
    "gallery": _("Known images in the model"),
    "whitening": _("Whitening of the vectors"),
    "label_smoothing": _("Label smoothing"),
    "dice": _("Weight of the overlap"),
    "prototypes": _("Prototypes of masks"),
    "mask_weight": _("Weight of the masks"),
    "seed": _("Random seed"),
    "flip": _("Mirroring left to right"),
    "vertical_flip": _("Mirroring top to bottom"),
    "scale_jitter": _("Change of scale"),
    "multi_scale": _("Sizes of the input"),
    "mosaic": _("Mosaics of four images"),
    "turn": _("Rotation"),
    "light_jitter": _("Change of light"),
    "shift": _("Shift"),
    "erase": _("Blanked patches"),
    "colour_jitter": _("Change of colour"),
    "mixup": _("Blended images"),
    "cutmix": _("Patches of other images"),
    "class_weights": _("Weight of the classes"),
    "iou_threshold": _("Overlap at which one box stays"),
    "score_threshold": _("Lowest score shown"),
    "good_class": _("Class without defects"),
    "bank_patches": _("Patches remembered"),
    "cell": _("Side of a cell"),
    "layers": _("Sizes that are looked for"),
    "window": _("Cells of an object"),
    "rounds": _("Rounds of search for errors"),
    "bins": _("Directions of edges"),
    "svm_cost": _("Cost of an error"),
    "iterations": _("Iterations"),
    "flip_tta": _("Mean with the mirror image"),
    "amp": _("Half precision"),
    "compile": _("Compilation"),
    "show_steps": _("Every step in the log"),
    "no_steps": _("No steps in the log"),
    "keep_ms": _("Pause after each step"),
}

#: Groups in the order of the form. What no group names stands in the last.
GROUPS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        _("How long"),
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
        _("How it learns"),
        (
            "accumulate",
            *("batch_size", "lr", "backbone_lr", "weight_decay", "warmup", "anneal", "ema", "label_smoothing"),
            *("dice", "mask_weight", "svm_cost", "class_weights", "dimensions", "arc_margin", "arc_scale", "seed"),
            *("teacher", "distill", "temperature"),
        ),
    ),
    (
        _("Variation of the images"),
        (
            *("flip", "vertical_flip", "scale_jitter", "turn", "light_jitter", "colour_jitter", "shift", "erase"),
            *("mosaic", "mixup", "cutmix", "multi_scale"),
        ),
    ),
    (_("Answers"), ("iou_threshold", "score_threshold", "flip_tta", "gallery", "whitening")),
    (_("Computing"), ("amp", "compile", "show_steps", "no_steps", "keep_ms")),
)


def label(name: str) -> Any:
    return LABELS.get(name, name)


def group_of(name: str) -> int:
    """Return the index of a parameter's group in GROUPS."""
    return next((index for index, (_label, names) in enumerate(GROUPS) if name in names), len(GROUPS) - 1)
