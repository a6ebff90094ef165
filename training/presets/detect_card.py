"""The card of the object detector; the program is detect.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common, multi_scale, tiling

CARD = Preset(
    name="detect",
    task="detection",
    title="Object detector",
    purpose="Finds objects and draws a box around each. Needs boxes or polygons on a few hundred images or more.",
    architectures={
        "lite0": "EfficientNet-Lite0 with ImageNet weights where their package is installed, else from scratch",
        "lite0-scratch": "EfficientNet-Lite0 from random weights",
    },
    parameters=(
        Param("architecture", "str", "lite0", "The network that looks at the image.", "",
              choices=("lite0", "lite0-scratch")),
        *common(batch=4, rate=3e-3, decay=1e-3, ema=0.998, warmup=0.03, anneal="cosine", resize="auto"),
        Param("backbone_lr", "float", 0.15, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True),
        Param("frozen_blocks", "int", 3, "So many first blocks of a pretrained backbone do not learn.", "", 0, 16,
              advanced=True),
        Param("frozen_filters", "bool", True, "The 5×5 filters of a pretrained backbone do not learn: a step takes a "
              "fifth less time on a CPU.", advanced=True),
        Param("strides", "str", "auto", "Feature maps objects are looked for on: a finer one finds smaller "
              "objects and costs more.", "", choices=("auto", "8", "8,16", "8,16,32"), advanced=True),
        Param("head_width", "int", 64, "Channels of the pyramid and the heads.", "", 16, 512, advanced=True),
        Param("head_depth", "int", 1, "Convolutions in each head.", "", 1, 8, advanced=True),
        *tiling(),
        Param("scale_jitter", "float", 0.25, "Training images are shrunk or enlarged by up to this share.", "",
              0, 0.9),
        Param("light_jitter", "float", 0.2, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              advanced=True),
        Param("mosaic", "float", 0.0, "Share of the training images that are put together from parts of four, cut "
              "where they meet (RICAP).", "", 0, 1, advanced=True),
        multi_scale(),
        Param("center_radius", "float", 1.5, "Points so near an object's centre answer for it.", "strides",
              0.5, 10, advanced=True),
        Param("iou_threshold", "float", 0.5, "Of two boxes that overlap more than this, the better one is kept.",
              "", 0.05, 1),
        Param("score_threshold", "float", 0.3, "Boxes below this score are not shown when the model is used.", "",
              0, 1),
    ),
    expected=(
        Expected("BCCD", "AP50", 0.785, "test split, learned from the other 292 images in 2 minutes on 2 CPU cores"),
        Expected("BCCD", "AP50", 0.905, "test split, learned from the other 292 images in 10 minutes on 2 CPU cores"),
    ),
    size="0.9 million weights, 3.5 MB; with large objects 3.2 million, 13 MB",
    created="2026-11-22",
    reference_time="10 minutes for 292 images on 2 CPU cores",
)  # fmt: skip
