"""The card of the detector by gradient histograms; the program is hog_detect.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

_SHARED = ("train_splits", "eval_split", "folds", "fold", "group_by", "width", "height", "resize", "seed")
_COMMON = common(batch=1, rate=0.1, decay=0, ema=0, warmup=0, anneal="linear", resize="auto")

CARD = Preset(
    name="hog_detect",
    task="detection",
    title="Object detection (HOG)",
    network="HOG + linear SVM",
    purpose=("Detects rigid objects with bounding boxes: a template of edges per class is compared with the image "
        "at several sizes. Trains in seconds to minutes, on CPUs only. Needs boxes or polygons."),
    architectures={"hog_detect": "A pyramid of histograms of oriented gradients and one template per class"},
    parameters=(
        Param("layers", "int", 6, "Pyramid levels per octave: 3 is faster, 6 finds more intermediate sizes.", "",
              1, 12, group="model"),
        Param("window", "int", 6, "Cells along the longer side of an object.", "", 3, 16, group="model"),
        Param("cell", "int", 0, "Cell size of the histograms. 0: automatic, 4 to 8, so that small objects are not "
                                "enlarged.", "px", 0, 64, group="model"),
        Param("bins", "int", 9, "Number of edge orientations.", "", 2, 36, advanced=True, group="model"),
        Param("svm_cost", "float", 1.0, "Regularization parameter C: higher values fit the training images more "
                                        "closely.",
              "", 1e-4, 1e4, group="optimization"),
        Param("iterations", "int", 80, "Maximum number of L-BFGS iterations per round; stops early when converged.",
              "", 1, 10_000, group="duration"),
        Param("rounds", "int", 3, "Number of rounds of hard-negative mining.", "",
              0, 20, group="duration"),
        *(param for param in _COMMON if param.name in _SHARED),
        Param("iou_threshold", "float", 0.4, "Of two boxes with a higher IoU than this, only the better one is "
                                             "kept.", "",
              0.05, 1, group="evaluation"),
        Param("score_threshold", "float", 0.3, "Predictions below this confidence are hidden when the model is "
                                               "used.", "",
              0, 1, group="evaluation"),
    ),
    expected=(
        Expected("generated digits", "AP50", 0.898, "40 images, trained on 160 others of 320×240 in 109 CPU seconds"),
    ),
    size="About 1,800 parameters per class with windows of 6×6 cells",
    created="2026-11-24",
    reference_time="109 CPU seconds for 160 images of 320×240",
    suspend=False,
    finish=False,
    restore=False,
    looks=False,
    device_kinds=("cpu",),
)  # fmt: skip
