"""The card of the image classifier; the program is classify.py."""

from __future__ import annotations

from .preset import Param, Preset, common

CARD = Preset(
    name="classify",
    task="classification",
    title="Image classifier",
    purpose="Says which of several classes an image belongs to. Needs a class for each image.",
    architectures={
        "resnet9": "ResNet-9, fast, for small images",
        "resnet18": "ResNet-18 with torchvision's weight names",
        "resnet50": "ResNet-50 with torchvision's weight names",
    },
    parameters=(
        Param("architecture", "str", "resnet9", "The network; the larger ones want a GPU.", "",
              choices=("resnet9", "resnet18", "resnet50")),
        *common(batch=256, rate=0.2, decay=5e-4, ema=0.99, warmup=0.2, anneal="linear"),
        Param("net_width", "int", 24, "Channels of ResNet-9's first layer.", "", 4, 256),
        Param("label_smoothing", "float", 0.1, "Share of certainty taken from the right class.", "", 0, 0.9,
              advanced=True),
        Param("shift", "float", 0.07, "Training images are moved by up to this share of their size.", "", 0, 0.5,
              advanced=True),
        Param("erase", "float", 0.0, "Share of the training images with one random patch blanked.", "", 0, 1,
              advanced=True),
        Param("flip_tta", "bool", True, "Score the mean over an image and its mirror image, in the evaluation and "
              "in the exported model.", advanced=True),
        Param("weights", "str", "", "A .pth or .safetensors file with weights to start from; layers of another "
              "shape are left out.", advanced=True),
    ),
    expected=(),
    size="ResNet-9: 2 million weights; ResNet-18: 11 million; ResNet-50: 24 million",
    reference_time="10 minutes for 60,000 images of 28×28 on 2 CPU cores",
)  # fmt: skip
