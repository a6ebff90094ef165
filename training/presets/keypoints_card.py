"""The card of the keypoint finder; the program is keypoints.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

CARD = Preset(
    name="keypoints",
    task="keypoints",
    title="Keypoint detection",
    network="EfficientNet-Lite0",
    weights_m=3.1,
    purpose=("Locates named points of an object: joints, landmarks, corners. Needs a COCO file with keypoints for "
        "at least a few dozen objects."),
    architectures={
        "lite0": "EfficientNet-Lite0 with ImageNet weights if their package is installed, otherwise from scratch",
        "lite0-scratch": "EfficientNet-Lite0 with random initialization",
    },
    parameters=(
        Param("architecture", "str", "lite0", "Backbone network.", "",
              choices=("lite0", "lite0-scratch"), group="model"),
        *(param for param in common(batch=16, rate=3e-3, decay=1e-3, ema=0.998, warmup=0.03, anneal="cosine")
          if param.name != "resize"),
        Param("crop", "str", "auto", ("Model input: each object by its box, or the whole image. auto: the whole "
                                      "image if each shows one object "
                                      "that fills at least a quarter of it."), "",
              choices=("auto", "object", "picture"), group="data"),
        Param("margin", "float", 0.125, "Margin around a box that is visible to the "
                                        "model, as a share of its sides.", "", 0, 1,
              advanced=True, group="data"),
        Param("pairs", "str", "", ("Points that swap in a mirror image, such as nose=tail, a=b. Names with left "
                                   "and right are known. Objects of a "
                                   "class without such points are not mirrored."), group="data"),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True, group="optimization"),
        Param("frozen_blocks", "int", 3, "Number of frozen first blocks of a pretrained backbone.", "", 0, 16,
              advanced=True, group="model"),
        Param("head_width", "int", 64, "Channels of the layers that fuse the backbone feature maps.", "", 16, 512,
              advanced=True, group="model"),
        Param("scale_jitter", "float", 0.25, "Training images are scaled by up to this share.", "",
              0, 0.9, group="augmentation"),
        Param("shift", "float", 0.08, "Training images are translated by up to this share of their size.", "", 0, 0.5,
              advanced=True, group="augmentation"),
        Param("turn", "float", 20.0, "Training images are rotated by up to this angle in degrees.", "", 0, 180,
              group="augmentation"),
        Param("light_jitter", "float", 0.2, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              advanced=True, group="augmentation"),
    ),
    expected=(
        Expected("generated drawings of people", "NME", 0.0111, "distance relative to the root of the box area; "
                                                                "trained in 401 CPU seconds"),
    ),
    size="3.1 million parameters, 13 MB",
    created="2026-11-23",
    reference_time="4 CPU minutes for 500 steps of 16 objects at 128×128",
)  # fmt: skip
