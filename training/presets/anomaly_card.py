"""The card of the anomaly detector; the program is anomaly.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

_SHARED = ("train_splits", "eval_split", "width", "height", "resize", "seed")
_COMMON = common(batch=1, rate=0.1, decay=0, ema=0, warmup=0, anneal="linear")

CARD = Preset(
    name="anomaly",
    task="anomaly",
    title="Anomaly detector",
    purpose="Finds defects without having seen one: learns from good images what is usual and shows where an image "
            "is not. Some dozens of good images are enough; bad ones, where there are some, set the threshold.",
    architectures={"patchcore": "PatchCore on EfficientNet-Lite0 with ImageNet weights"},
    parameters=(
        Param("good_class", "str", "", "The class of images without defects. Empty: the only class in what is learned "
              "from, or the one that is named good, ok or normal."),
        Param("bank_patches", "int", 2000, "Patches of good images that are remembered: more find finer defects and "
              "take longer.", "", 50, 20_000),
        *(param for param in _COMMON if param.name in _SHARED),
    ),
    expected=(
        Expected("Drawn cloth", "AUROC", 1.0, "scratches, blobs and missing parts; learned from 60 good images"),
    ),
    size="0.8 million weights, and 152 numbers for each patch remembered",
    created="2026-11-23",
    reference_time="9 CPU seconds for 60 good images of 160×160 and 60 to score on",
    suspend=False,
    finish=False,
    restore=False,
    device_kinds=("cpu",),
    looks=False,
)  # fmt: skip
