"""The card of the image tagger; the program is tag.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .classify_card import CARD as CLASSIFIER
from .preset import Expected, Preset, distillation

_CHANGED: dict[str, dict[str, Any]] = {
    "architecture": {"default": "lite0"},
    "label_smoothing": {"default": 0.0, "help": "How far from certain a class is taken to be there, or not to be."},
    "class_weights": {"help": "balanced: images with a class count as much as those without it, however few they are."},
}
_WITH_ONE_CLASS = {param.name for param in distillation()}  # soft answers compare classes with each other

CARD = Preset(
    name="tag",
    task="tagging",
    title="Image tagger",
    purpose="Says which classes are on an image, any number of them, each with a threshold of its own. Learns from "
            "objects: their boxes or outlines say which classes an image shows.",
    architectures=CLASSIFIER.architectures,
    parameters=tuple(replace(param, **_CHANGED.get(param.name, {})) for param in CLASSIFIER.parameters
                     if param.name not in _WITH_ONE_CLASS),
    expected=(
        Expected("generated shapes", "mean average precision", 0.9989, "Lite0 on 40 images, learned from 260 "
                 "others in 10 minutes on 2 CPU cores"),
    ),
    size=CLASSIFIER.size,
    created="2026-11-24",
    reference_time="10 minutes for 110 passes over 260 images of 160×160 on 2 CPU cores",
)  # fmt: skip
