"""The card of the anomaly detector; the program is anomaly.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

_SHARED = ("train_splits", "eval_split", "width", "height", "resize", "seed")
_COMMON = common(batch=1, rate=0.1, decay=0, ema=0, warmup=0, anneal="linear")

CARD = Preset(
    name="anomaly",
    task="anomaly",
    title="Anomaly detection",
    network="PatchCore, EfficientNet-Lite0",
    weights_m=0.8,
    purpose=("Finds defects without training on defects: learns from good images and locates deviations. A few "
        "dozen good images are enough; defective ones, if available, set the threshold."),
    architectures={"patchcore": "PatchCore on EfficientNet-Lite0 with ImageNet weights"},
    parameters=(
        Param("good_class", "str", "", ("The class of images without defects. Leave empty to use the only training "
                                        "class, or the one named good, ok or normal."), group="data"),
        Param("bank_patches", "int", 2000, "Number of stored patches of good images: more find finer defects and "
                                           "are slower.", "", 50, 20_000, group="model"),
        *(param for param in _COMMON if param.name in _SHARED),
    ),
    expected=(
        Expected("Fabric with pattern", "AUROC", 1.0, "scratches, blobs and missing parts; trained on 60 good images"),
    ),
    size="0.8 million parameters, and 152 numbers per stored patch",
    created="2026-11-23",
    reference_time="9 CPU seconds for 60 good images of 160×160 and 60 for evaluation",
    suspend=False,
    finish=False,
    restore=False,
    device_kinds=("cpu",),
    looks=False,
)  # fmt: skip
