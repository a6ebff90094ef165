"""The card of the image tagger; the program is tag.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .classify_card import CARD as CLASSIFIER
from .preset import Expected, Preset, distillation

_CHANGED: dict[str, dict[str, Any]] = {
    "architecture": {"default": "lite0"},
    "label_smoothing": {"default": 0.0, "help": "Label smoothing: how far targets are from 0 and 1."},
    "class_weights": {"help": "balanced: images with a class have the same total weight as images without it."},
}
_WITH_ONE_CLASS = {param.name for param in distillation()}  # soft answers compare classes with each other

CARD = Preset(
    name="tag",
    task="tagging",
    title="Image tagging",
    network="EfficientNet-Lite0",
    weights_m=3.4,
    purpose=("Predicts any number of classes per image, each with its own threshold. Trains on objects: their boxes "
        "or polygons define which classes an image shows."),
    architectures=CLASSIFIER.architectures,
    parameters=tuple(replace(param, **_CHANGED.get(param.name, {})) for param in CLASSIFIER.parameters
                     if param.name not in _WITH_ONE_CLASS),
    expected=(
        Expected("generated shapes", "mAP", 0.9989, "Lite0 on 40 images, trained on 260 others "
                                                                       "in 10 minutes "
                                                                       "on 2 CPU cores"),
    ),
    size=CLASSIFIER.size,
    created="2026-11-24",
    reference_time="10 minutes for 110 epochs over 260 images of 160×160 on 2 CPU cores",
)  # fmt: skip
