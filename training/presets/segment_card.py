"""The card of the image segmenter; the program is segment.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common, distillation, multi_scale, tiling

CARD = Preset(
    name="segment",
    task="segmentation",
    title="Image segmenter",
    purpose="Says what each pixel shows and draws the outlines. Needs polygons or masks on some dozens of images or "
            "more; boxes serve as ellipses.",
    architectures={
        "lite0": "EfficientNet-Lite0 with ImageNet weights where their package is installed, else from scratch",
        "lite0-scratch": "EfficientNet-Lite0 from random weights",
        "unet": "U-Net from random weights, for images unlike photographs",
    },
    parameters=(
        Param("architecture", "str", "lite0", "The network that looks at the image.", "",
              choices=("lite0", "lite0-scratch", "unet")),
        *common(batch=4, rate=3e-3, decay=1e-3, ema=0.998, warmup=0.03, anneal="cosine", resize="auto"),
        Param("boxes", "str", "ellipse", "What stands for an object that has only a box: the ellipse in it, the "
              "whole box, or nothing: then its pixels are left out.", "", choices=("ellipse", "whole", "ignore")),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True),
        Param("frozen_blocks", "int", 3, "So many first blocks of a pretrained backbone do not learn.", "", 0, 16,
              advanced=True),
        Param("stride", "str", "2", "Pixels of the input to one of the answer, along each side: 4 is faster, 2 "
              "follows outlines more closely. The U-Net answers at 2.", "", choices=("2", "4"), advanced=True),
        Param("head_width", "int", 64, "Channels of the layers that put the backbone's maps together.", "", 16, 512,
              advanced=True),
        Param("net_width", "int", 16, "Channels of the U-Net's first layer.", "", 8, 128, advanced=True),
        Param("dice", "float", 1.0, "Weight of the overlap with each class, beside the cross-entropy of the pixels.",
              "", 0, 100, advanced=True),
        *tiling(),
        Param("scale_jitter", "float", 0.25, "Training images are shrunk or enlarged by up to this share.", "",
              0, 0.9),
        Param("light_jitter", "float", 0.2, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              advanced=True),
        multi_scale(),
        *distillation(),
    ),
    expected=(
        Expected("generated shapes", "mIoU", 0.929, "40 images, learned from 260 others in 1,600 steps, which took "
                 "1,030 seconds of one core"),
        Expected("nuts", "mIoU", 0.893, "6 photographs, learned from 12 others in 474 CPU seconds"),
        Expected("BCCD", "mIoU", 0.654, "ellipses in the boxes of the cells, learned in 415 CPU seconds"),
    ),
    size="3.2 million weights, 13 MB",
    created="2026-11-23",
    reference_time="17 CPU minutes for 25 passes over 260 images of 320×240",
)  # fmt: skip
