"""The card of the instance segmenter; the program is instances.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common, multi_scale, tiling

CARD = Preset(
    name="instances",
    task="instances",
    title="Instance segmentation",
    network="EfficientNet-Lite0",
    weights_m=1,
    purpose=("Detects objects with their outlines. Needs polygons or masks on at least a few dozen images; boxes "
        "are used as ellipses."),
    architectures={
        "lite0": "EfficientNet-Lite0 with ImageNet weights if their package is installed, otherwise from scratch",
        "lite0-scratch": "EfficientNet-Lite0 with random initialization",
    },
    parameters=(
        Param("architecture", "str", "lite0", "Backbone network.", "",
              choices=("lite0", "lite0-scratch"), group="model"),
        *common(batch=4, rate=3e-3, decay=1e-3, ema=0.998, warmup=0.03, anneal="cosine", resize="auto"),
        Param("boxes", "str", "ellipse", ("Shape of an object with only a box: its ellipse, the "
                                          "whole box, or none: then only its box is trained."), "",
              choices=("ellipse", "whole", "ignore"), group="data"),
        Param("backbone_lr", "float", 0.15, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True, group="optimization"),
        Param("frozen_blocks", "int", 3, "Number of frozen first blocks of a pretrained backbone.", "", 0, 16,
              advanced=True, group="model"),
        Param("frozen_filters", "bool", False, "The 5×5 filters of a pretrained backbone are frozen: a step takes "
                                               "20 % less time on a CPU.", advanced=True, group="model"),
        Param("strides", "str", "auto", "Feature maps for detection: a finer one finds smaller objects and is "
                                        "slower.", "", choices=("auto", "8", "8,16", "8,16,32"), advanced=True,
              group="model"),
        Param("head_width", "int", 64, "Channels of the feature pyramid and the heads.", "", 16, 512, advanced=True,
              group="model"),
        Param("head_depth", "int", 1, "Convolutions in each head.", "", 1, 8, advanced=True, group="model"),
        Param("prototypes", "int", 16, "Number of prototypes that masks are composed of.", "", 4, 64, advanced=True,
              group="model"),
        Param("mask_weight", "float", 2.0, "Weight of the mask loss, in addition to classes and boxes.", "", 0, 100,
              advanced=True, group="optimization"),
        *tiling(),
        Param("scale_jitter", "float", 0.25, "Training images are scaled by up to this share.", "",
              0, 0.9, group="augmentation"),
        Param("light_jitter", "float", 0.2, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              advanced=True, group="augmentation"),
        multi_scale(),
        Param("center_radius", "float", 1.5, "Points within this radius around the center of an object are "
                                             "positive samples.", "strides",
              0.5, 10, advanced=True, group="model"),
        Param("iou_threshold", "float", 0.5, "Of two boxes with a higher IoU than this, only the better one is kept.",
              "", 0.05, 1, group="evaluation"),
        Param("score_threshold", "float", 0.3, "Predictions below this confidence are hidden when the model is "
                                               "used.", "",
              0, 1, group="evaluation"),
    ),
    expected=(
        Expected("nuts", "mask AP50", 0.972, "6 photographs, trained on 12 others in 250 steps; GrabCut in the "
                                             "ground-truth boxes: 0.717"),
    ),
    size="1.0 million parameters, 3.9 MB; with large objects 3.3 million, 13 MB",
    created="2026-11-23",
    reference_time="384 seconds for 250 steps of 4 photographs on busy cores",
)  # fmt: skip
