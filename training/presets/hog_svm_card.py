"""The card of the classifier by gradient histograms; the program is hog_svm.py."""

from __future__ import annotations

from .preset import Param, Preset, common

_SHARED = ("train_splits", "eval_split", "folds", "fold", "group_by", "width", "height", "resize", "seed")
_COMMON = common(batch=1, rate=0.1, decay=0, ema=0, warmup=0, anneal="linear")

CARD = Preset(
    name="hog_svm",
    task="classification",
    title="Image classification (HOG)",
    network="HOG + linear SVM",
    purpose=("Classifies images by histograms of oriented gradients and a linear support vector machine. Trains in "
        "seconds to minutes, on CPUs only."),
    architectures={"hog_svm": "Histograms of oriented gradients and one linear SVM per class"},
    parameters=(
        Param("cell", "int", 0, "Cell size of the histograms. 0: 4 for images of up "
                                "to 64 pixels, otherwise 8.", "px", 0, 64, group="model"),
        Param("bins", "int", 9, "Number of edge orientations.", "", 2, 36, advanced=True, group="model"),
        Param("svm_cost", "float", 1.0, "Regularization parameter C: higher values fit the training images more "
                                        "closely.",
              "", 1e-4, 1e4, group="optimization"),
        Param("iterations", "int", 150, "Maximum number of L-BFGS iterations; "
                                        "stops early when converged.", "", 1, 10_000, group="duration"),
        *(param for param in _COMMON if param.name in _SHARED),
    ),
    expected=(),
    size="About 1,300 parameters per class at 28×28",
    created="2026-11-23",
    reference_time="Seconds for a few hundred images, minutes for tens of thousands",
    suspend=False,
    finish=False,
    restore=False,
    looks=False,
    device_kinds=("cpu",),
)  # fmt: skip
