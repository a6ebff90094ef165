"""The card of the image embedder; the program is embed.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

_CHOSEN = {
    param.name: param
    for param in (
        Param("batch_size", "int", 0, "Images per optimizer step, over all devices. 0: depends on the network and "
                                      "the image size.", "images", 0, 65536, group="optimization"),
        Param("lr", "float", 0.0, "Maximum learning rate, per optimizer step. 0: depends on the network.", "", 0, 10,
              group="optimization"),
    )
}  # fmt: skip

CARD = Preset(
    name="embed",
    task="embedding",
    title="Image similarity",
    network="ResNet-9",
    weights_m=0.9,
    purpose=("Finds the most similar reference images: images of a class are close to each other, including classes "
        "that were not trained. Needs a class for each image."),
    architectures={
        "resnet9": "ResNet-9, fast, for small images",
        "lite0": "EfficientNet-Lite0 with ImageNet weights if their package is installed: for photographs, also few",
        "resnet18": "ResNet-18",
        "resnet50": "ResNet-50",
    },
    parameters=(
        Param("architecture", "str", "resnet9", "Network architecture; the larger ones need a GPU.", "",
              choices=("resnet9", "lite0", "resnet18", "resnet50"), group="model"),
        *(_CHOSEN.get(param.name, param)
          for param in common(batch=0, rate=0.0, decay=5e-4, ema=0.99, warmup=0.2, anneal="linear")),
        Param("dimensions", "int", 128, "Dimensions of the embedding.", "", 8, 1024, group="optimization"),
        Param("arc_margin", "float", 0.2, "Angular margin between the own "
                                          "class and others.", "rad", 0, 1, advanced=True, group="optimization"),
        Param("arc_scale", "float", 16.0, "Scale factor of the cosine similarities.", "", 1, 128,
              advanced=True, group="optimization"),
        Param("gallery", "int", 10_000, "Number of training images, spread over the classes, that are stored in "
                                        "the model as references.", "images", 1, 100_000, group="evaluation"),
        Param("net_width", "int", 24, "Channels of the first layer of ResNet-9.", "", 4, 256, group="model"),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True, group="optimization"),
        Param("frozen_stages", "int", 0, "Number of first stages of the network that are frozen; the last layer is "
                                         "always trained.", "", 0, 16, advanced=True, group="model"),
        Param("scale_jitter", "float", 0.0, "Training images are scaled by up to this share.", "",
              0, 0.9, group="augmentation"),
        Param("shift", "float", 0.07, "Training images are translated by up to this share of their size.", "", 0, 0.5,
              advanced=True, group="augmentation"),
        Param("whitening", "float", 0.5, ("Strength of PCA whitening of the embedding, which gives directions with "
                                          "little variance more weight. 0: none."), "", 0, 1, advanced=True,
              group="evaluation"),
        Param("flip_tta", "bool", True, "Average the scores of an image and its mirror image, in the evaluation "
                                        "and in the exported model.", advanced=True, group="evaluation"),
    ),
    expected=(
        Expected("Fashion-MNIST", "Recall@1", 0.923, ("among the 10,000 test images, trained on the other 60,000 "
                                                      "in 2,000 steps, 583 CPU "
                                                      "seconds of a core with bfloat16")),
        Expected("Fashion-MNIST", "accuracy", 0.939, "class by the nearest of 10,000 known images, same training"),
    ),
    size=("Million parameters: ResNet-9 0.9, Lite0 3.5, ResNet-18 11, ResNet-50 24; and 512 bytes per reference "
        "image"),
    created="2026-11-22",
    reference_time="10 minutes for 8.5 epochs over 60,000 images of 28×28 on 2 CPU cores",
)  # fmt: skip
