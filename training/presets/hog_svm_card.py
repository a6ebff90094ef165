"""The card of the classifier by gradient histograms; the program is hog_svm.py."""

from __future__ import annotations

from .preset import Param, Preset, common

_SHARED = ("train_splits", "eval_split", "folds", "fold", "group_by", "width", "height", "resize", "seed")
_COMMON = common(batch=1, rate=0.1, decay=0, ema=0, warmup=0, anneal="linear")

CARD = Preset(
    name="hog_svm",
    task="classification",
    title="Gradient histograms with an SVM",
    purpose="Says which of several classes an image belongs to, by the directions of its edges and a linear support "
            "vector machine. Learns in seconds to minutes, on CPUs only.",
    architectures={"hog_svm": "Histograms of oriented gradients and one linear machine for each class"},
    parameters=(
        Param("cell", "int", 0, "Side of a cell whose edges are counted together. 0: 4 for images of up to 64 pixels, "
              "else 8.", "px", 0, 64),
        Param("bins", "int", 9, "Directions that edges are told apart by.", "", 2, 36, advanced=True),
        Param("svm_cost", "float", 1.0, "What an error costs, beside a wide margin: higher fits the images closer.",
              "", 1e-4, 1e4),
        Param("iterations", "int", 150, "Iterations of L-BFGS at most; it stops where nothing changes.", "", 1, 10_000),
        *(param for param in _COMMON if param.name in _SHARED),
    ),
    expected=(),
    size="Some 1,300 weights for each class at 28×28",
    created="2026-11-23",
    reference_time="Seconds for some hundred images, minutes for tens of thousands",
    suspend=False,
    finish=False,
    restore=False,
    looks=False,
    device_kinds=("cpu",),
)  # fmt: skip
