"""The card of the image classifier; the program is classify.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common, distillation, own_network

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
    name="classify",
    task="classification",
    title="Image classification",
    network="ResNet-9",
    weights_m=0.9,
    purpose="Classifies images. Needs a class for each image.",
    architectures={
        "resnet9": "ResNet-9, fast, for small images",
        "lite0": "EfficientNet-Lite0 with ImageNet weights if their package is installed: for photographs, also few",
        "lenet5": "LeNet-5 with batch norm: digits within a minute",
        "resnet18": "ResNet-18 with torchvision weight names",
        "resnet50": "ResNet-50 with torchvision weight names",
        "googlenet_bn": "GoogLeNet (Inception v1) with batch norm",
        "vit": "A small vision transformer: for many images",
        "own": "A custom network, written in PyTorch",
    },
    parameters=(
        Param("architecture", "str", "resnet9", "Network architecture; the larger ones need a GPU.", "",
              choices=("resnet9", "lite0", "lenet5", "resnet18", "resnet50", "googlenet_bn", "vit", "own"),
              group="model"),
        own_network(),
        *(_CHOSEN.get(param.name, param)
          for param in common(batch=0, rate=0.0, decay=5e-4, ema=0.99, warmup=0.2, anneal="linear")),
        Param("net_width", "int", 24, "Channels of the first layer of ResNet-9.", "", 4, 256, group="model"),
        Param("backbone_lr", "float", 0.3, "Learning rate of the pretrained layers as a share of lr.", "", 0, 1,
              advanced=True, group="optimization"),
        Param("frozen_stages", "int", 0, "Number of first stages of the network that are frozen; the last layer is "
                                         "always trained.", "", 0, 16, advanced=True, group="model"),
        Param("label_smoothing", "float", 0.1, "Probability mass taken from the correct class.", "", 0, 0.9,
              advanced=True, group="optimization"),
        Param("shift", "float", 0.07, "Training images are translated by up to this share of their size.", "", 0, 0.5,
              advanced=True, group="augmentation"),
        Param("erase", "float", 0.0, "Share of the training images with one random patch erased.", "", 0, 1,
              advanced=True, group="augmentation"),
        Param("light_jitter", "float", 0.0, "Brightness and contrast change by up to this share.", "", 0, 0.9,
              group="augmentation"),
        Param("colour_jitter", "float", 0.0, "Each color channel is scaled by up to this share.", "", 0, 0.9,
              advanced=True, group="augmentation"),
        Param("mixup", "float", 0.0, "Share of the training images that are blended with another one, including "
                                     "their labels (MixUp).", "", 0, 1, advanced=True, group="augmentation"),
        Param("cutmix", "float", 0.0, "Share of the training images that get a patch of another one, with mixed "
                                      "labels (CutMix).", "", 0, 1, advanced=True, group="augmentation"),
        Param("class_weights", "str", "none", ("balanced: rare classes have the same weight as frequent ones, and "
                                               "the best checkpoint has "
                                               "the best mean over the classes."), "", choices=("none", "balanced"),
              group="optimization"),
        Param("flip_tta", "bool", True, "Average the scores of an image and its mirror image, in the evaluation "
                                        "and in the exported model.", advanced=True, group="evaluation"),
        *distillation(),
    ),
    expected=(
        Expected("Fashion-MNIST", "accuracy", 0.942, ("ResNet-9 on the 10,000 test images, trained on the other "
                                                      "60,000 in 10 minutes on "
                                                      "2 CPU cores with bfloat16")),
        Expected("BCCD", "balanced accuracy", 0.995, "Lite0 on cells cropped from the test split, trained on the "
                                                     "cells of the others in 247 CPU seconds"),
    ),
    size=("Million parameters: LeNet-5 0.06, ResNet-9 0.9, ViT 2.7, Lite0 3.4, GoogLeNet 6, ResNet-18 11, "
        "ResNet-50 24"),
    created="2026-11-22",
    reference_time="10 minutes for 7.7 epochs over 60,000 images of 28×28 on 2 CPU cores",
)  # fmt: skip
