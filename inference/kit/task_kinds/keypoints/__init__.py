"""Keypoints at work: named points of an object, scored by how far they are from where they should be."""

from __future__ import annotations

from inference.kit.contracts.served_task import SHAPES, Figure, Measure, Pages, ServedTask
from inference.kit.task_kinds.keypoints.answer import ANSWER

PAGES = Pages(
    figures=(
        Figure("nme", "NME", "Mean distance of points relative to the root of the box area; lower is better"),
        Figure("pck05", "PCK@0.05", "Share of points within a twentieth of the longer side of the box"),
        Figure("pck10", "PCK@0.1", "Share of points within a tenth of the longer side of the box"),
        Figure("oks_ap", "OKS-AP", "COCO AP by object keypoint similarity, from 0.5 to 0.95"),
    ),
    headline=("pck05",),
    sections=(
        "inference/task_kinds/keypoints/_classes.html",
        "inference/task_kinds/keypoints/_points.html",
        "inference/results/_confusion.html",
        "inference/results/_images.html",
    ),
    script="inference/task_kinds/keypoints_evaluation.js",
    caption="inference/task_kinds/keypoints/_caption.html",
    overlay="inference/task_kinds/keypoints/_overlay.html",
    legend="inference/task_kinds/keypoints/_legend.html",
    try_script="inference/task_kinds/keypoints.js",
    try_controls="inference/task_kinds/keypoints/_try_controls.html",
    snippet='for found in answer.json()["predictions"]:  # add ?region=x1,y1,x2,y2 for one object among several\n'
    '    for point in found["keypoints"]:\n'
    '        print(found["name"], point["name"], point["x"], point["y"], point["score"])',
)

KEYPOINTS = ServedTask(
    name="keypoints",
    data=(SHAPES,),
    answer=ANSWER,
    scoring="inference.kit.task_kinds.keypoints.scoring",
    pages=PAGES,
    measures=(
        Measure(
            "nme",
            "NME",
            lambda entry: (entry["nme"] or 0.0) * entry["measured"],
            lambda entry: entry["measured"],
            lower_is_better=True,
        ),
        Measure("pck05", "PCK@0.05", lambda entry: entry["near"], lambda entry: entry["points"]),
    ),
)
