"""The card of the keypoint finder; the program is keypoints.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

CARD = Preset(
    name="keypoints",
    task="keypoints",
    title="Keypoint finder",
    purpose="Says where the named points of an object are: joints, landmarks, corners. Needs a COCO file with "
            "keypoints for some dozens of objects or more.",
    architectures={
        "lite0": "EfficientNet-Lite0 with ImageNet weights where their package is installed, else from scratch",
        "lite0-scratch": "EfficientNet-Lite0 from random weights",
    },
    parameters=(
        Param("architecture", "str", "lite0", "The network that looks at the image.", "",
              choices=("lite0", "lite0-scratch")),
        *(param for param in common(batch=16, rate=3e-3, decay=1e-3, ema=0.998, warmup=0.03, anneal="cosine")
          if param.name != "resize"),
        Param("crop", "str", "auto", "What the model looks at: each object by its box, or the whole picture. auto: "
              "the picture where each shows one object that fills a quarter of it or more.", "",
              choices=("auto", "object", "picture")),
        Param("margin", "float", 0.125, "What is seen around a box, as a share of its sides.", "", 0, 1,
              advanced=True),
        Param("pairs", "str", "", "Points that change places in a mirror image, as nose=tail, a=b. Names with left "
              "and right are known. Objects of a class without such points are not mirrored."),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True),
        Param("frozen_blocks", "int", 3, "So many first blocks of a pretrained backbone do not learn.", "", 0, 16,
              advanced=True),
        Param("head_width", "int", 64, "Channels of the layers that put the backbone's maps together.", "", 16, 512,
              advanced=True),
        Param("scale_jitter", "float", 0.25, "Training images are shrunk or enlarged by up to this share.", "",
              0, 0.9),
        Param("shift", "float", 0.08, "Training images are moved by up to this share of their size.", "", 0, 0.5,
              advanced=True),
        Param("turn", "float", 20.0, "Training images are turned by up to so many degrees.", "", 0, 180),
        Param("light_jitter", "float", 0.2, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              advanced=True),
    ),
    expected=(
        Expected("generated figures", "NME", 0.0111, "distance by the root of the box's area; learned in 401 CPU "
                 "seconds"),
    ),
    size="3.1 million weights, 13 MB",
    created="2026-11-23",
    reference_time="4 CPU minutes for 500 steps of 16 objects at 128×128",
)  # fmt: skip
