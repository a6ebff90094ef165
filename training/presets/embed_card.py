"""The card of the image embedder; the program is embed.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

_CHOSEN = {
    param.name: param
    for param in (
        Param("batch_size", "int", 0, "Images per optimizer step, over all devices together. 0: what suits the network "
              "and the size of the images.", "images", 0, 65536),
        Param("lr", "float", 0.0, "Highest learning rate, per optimizer step. 0: what suits the network.", "", 0, 10),
    )
}  # fmt: skip

CARD = Preset(
    name="embed",
    task="embedding",
    title="Image embedder",
    purpose="Finds the known images that are most like a new one: images of one class lie near each other, also those "
            "of classes it never saw. Needs a class for each image.",
    architectures={
        "resnet9": "ResNet-9, fast, for small images",
        "lite0": "EfficientNet-Lite0 with ImageNet weights where their package is installed: for photographs, also few",
        "resnet18": "ResNet-18",
        "resnet50": "ResNet-50",
    },
    parameters=(
        Param("architecture", "str", "resnet9", "The network; the larger ones want a GPU.", "",
              choices=("resnet9", "lite0", "resnet18", "resnet50")),
        *(_CHOSEN.get(param.name, param)
          for param in common(batch=0, rate=0.0, decay=5e-4, ema=0.99, warmup=0.2, anneal="linear")),
        Param("dimensions", "int", 128, "Numbers that stand for an image.", "", 8, 1024),
        Param("arc_margin", "float", 0.2, "How much nearer an image must be to its own class than to others, as an "
              "angle.", "rad", 0, 1, advanced=True),
        Param("arc_scale", "float", 16.0, "How sharply classes are told apart: factor of the cosines.", "", 1, 128,
              advanced=True),
        Param("gallery", "int", 10_000, "So many learned images, spread over the classes, stay with the model as the "
              "known ones.", "images", 1, 100_000),
        Param("net_width", "int", 24, "Channels of ResNet-9's first layer.", "", 4, 256),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True),
        Param("frozen_stages", "int", 0, "So many first stages of the network keep their weights; the last layer "
              "always learns.", "", 0, 16, advanced=True),
        Param("scale_jitter", "float", 0.0, "Training images are shrunk or enlarged by up to this share.", "",
              0, 0.9),
        Param("shift", "float", 0.07, "Training images are moved by up to this share of their size.", "", 0, 0.5,
              advanced=True),
        Param("whitening", "float", 0.5, "How far directions in which the known images differ little are made to count "
              "as much as others (PCA whitening). 0: not at all.", "", 0, 1, advanced=True),
        Param("flip_tta", "bool", True, "Score the mean over an image and its mirror image, in the evaluation and "
              "in the exported model.", advanced=True),
    ),
    expected=(
        Expected("Fashion-MNIST", "Recall@1", 0.923, "among the 10,000 test images, learned from the other 60,000 in "
                 "2,000 steps, 583 CPU seconds of a core that computes in bfloat16"),
        Expected("Fashion-MNIST", "accuracy", 0.939, "class by the nearest of 10,000 known images, same training"),
    ),
    size="Millions of weights: ResNet-9 0.9, Lite0 3.5, ResNet-18 11, ResNet-50 24; and 512 bytes for each known image",
    created="2026-11-22",
    reference_time="10 minutes for 8.5 passes over 60,000 images of 28×28 on 2 CPU cores",
)  # fmt: skip
