"""The card of the image segmenter; the program is segment.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common, distillation, multi_scale, tiling

CARD = Preset(
    name="segment",
    task="segmentation",
    title="Semantic segmentation",
    network="EfficientNet-Lite0",
    weights_m=3.2,
    purpose=("Classifies each pixel and outlines regions. Needs polygons or masks on at least a few dozen images; "
        "boxes are used as ellipses."),
    architectures={
        "lite0": "EfficientNet-Lite0 with ImageNet weights if their package is installed, otherwise from scratch",
        "lite0-scratch": "EfficientNet-Lite0 with random initialization",
        "unet": "U-Net with random initialization, for images unlike photographs",
    },
    parameters=(
        Param("architecture", "str", "lite0", "Backbone network.", "",
              choices=("lite0", "lite0-scratch", "unet"), group="model"),
        *common(batch=4, rate=3e-3, decay=1e-3, ema=0.998, warmup=0.03, anneal="cosine", resize="auto"),
        Param("boxes", "str", "ellipse", ("Shape of an object with only a box: its ellipse, the "
                                          "whole box, or none: then its pixels are ignored."), "",
              choices=("ellipse", "whole", "ignore"), group="data"),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True, group="optimization"),
        Param("frozen_blocks", "int", 3, "Number of frozen first blocks of a pretrained backbone.", "", 0, 16,
              advanced=True, group="model"),
        Param("stride", "str", "2", ("Input pixels per output pixel along each side: 4 is faster, 2 follows "
                                     "outlines more closely. The U-Net has stride 2."),
              "", choices=("2", "4"), advanced=True, group="model"),
        Param("head_width", "int", 64, "Channels of the layers that fuse the backbone feature maps.", "", 16, 512,
              advanced=True, group="model"),
        Param("net_width", "int", 16, "Channels of the first layer of the U-Net.", "", 8, 128, advanced=True,
              group="model"),
        Param("dice", "float", 1.0, "Weight of the IoU loss per class, in addition to the pixel cross-entropy.",
              "", 0, 100, advanced=True, group="optimization"),
        *tiling(),
        Param("scale_jitter", "float", 0.25, "Training images are scaled by up to this share.", "",
              0, 0.9, group="augmentation"),
        Param("light_jitter", "float", 0.2, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              advanced=True, group="augmentation"),
        multi_scale(),
        *distillation(),
    ),
    expected=(
        Expected("generated shapes", "mIoU", 0.929, "40 images, trained on 260 others in 1,600 steps in 1,030 "
                                                    "seconds of one core"),
        Expected("nuts", "mIoU", 0.893, "6 photographs, trained on 12 others in 474 CPU seconds"),
        Expected("BCCD", "mIoU", 0.654, "ellipses in the boxes of the cells, trained in 415 CPU seconds"),
    ),
    size="3.2 million parameters, 13 MB",
    created="2026-11-23",
    reference_time="17 CPU minutes for 25 epochs over 260 images of 320×240",
)  # fmt: skip
