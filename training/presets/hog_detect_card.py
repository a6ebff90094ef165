"""The card of the detector by gradient histograms; the program is hog_detect.py."""

from __future__ import annotations

from .preset import Expected, Param, Preset, common

_SHARED = ("train_splits", "eval_split", "folds", "fold", "group_by", "width", "height", "resize", "seed")
_COMMON = common(batch=1, rate=0.1, decay=0, ema=0, warmup=0, anneal="linear", resize="auto")

CARD = Preset(
    name="hog_detect",
    task="detection",
    title="Gradient histograms as a detector",
    purpose="Finds objects of firm shape and draws a box around each: for each class a template of edges is slid over "
            "the image at several sizes. Learns in seconds to minutes, on CPUs only. Needs boxes or polygons.",
    architectures={"hog_detect": "A pyramid of histograms of oriented gradients and one template for each class"},
    parameters=(
        Param("layers", "int", 6, "Sizes at which objects are looked for: 3 is faster, 6 finds sizes in between.", "",
              1, 12),
        Param("window", "int", 6, "Cells along the longer side of an object.", "", 3, 16),
        Param("cell", "int", 0, "Side of a cell whose edges are counted together. 0: so that small objects are not "
              "enlarged, 4 to 8.", "px", 0, 64),
        Param("bins", "int", 9, "Directions that edges are told apart by.", "", 2, 36, advanced=True),
        Param("svm_cost", "float", 1.0, "What an error costs, beside a wide margin: higher fits the images closer.",
              "", 1e-4, 1e4),
        Param("iterations", "int", 80, "Iterations of L-BFGS at most, in each round; it stops where nothing changes.",
              "", 1, 10_000),
        Param("rounds", "int", 3, "How often the images are searched for what was wrongly found, to learn from it.", "",
              0, 20),
        *(param for param in _COMMON if param.name in _SHARED),
        Param("iou_threshold", "float", 0.4, "Of two boxes that overlap more than this, the better one is kept.", "",
              0.05, 1),
        Param("score_threshold", "float", 0.3, "Boxes below this score are not shown when the model is used.", "",
              0, 1),
    ),
    expected=(
        Expected("generated digits", "AP50", 0.898, "40 images, learned from 160 others of 320×240 in 109 CPU seconds"),
    ),
    size="Some 1,800 weights for each class with windows of 6×6 cells",
    created="2026-11-24",
    reference_time="109 CPU seconds for 160 images of 320×240",
    suspend=False,
    finish=False,
    restore=False,
    looks=False,
    device_kinds=("cpu",),
)  # fmt: skip
