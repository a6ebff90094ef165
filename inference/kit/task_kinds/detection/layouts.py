"""How detectors of different programs write their boxes: read as boxes [P, 4] and scores [P, C].

Sources: the output of Ultralytics' exports since YOLOv8 ([N, 4 + C, P], boxes as centre and size in pixels of the
input, scores after the logistic function), of YOLOv5 ([N, P, 5 + C], with a score of there being an object at all) and
of its models without suppression ([N, P, 6], boxes as corners, score, class); DETR's (Carion et al. 2020; boxes as
centre and size in parts of the input, logits with "no object" last) and those of its successors (Zhu et al. 2021; each
class a question of its own, without "no object").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from inference.kit.contracts.layouts import END_TO_END, Found, Layout, Output, Outputs, Unfit, of_rank, one
from inference.kit.contracts.served_task import Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.spec import InputSpec, ModelSpec
from inference.kit.task_kinds.detection import further
from inference.kit.task_kinds.detection.reading import Floats, corners, logistic, spread, values

OWN = ("boxes", "scores")
YOLO, YOLOV5, END2END, DETR = ("yolo",), ("yolov5",), ("end2end",), ("detr_logits", "detr_boxes")
DETR_SIGMOID = ("detr_sigmoid_logits", "detr_boxes")


def boxes_and_scores(spec: ModelSpec, outputs: Arrays, row: int) -> tuple[Floats, Floats]:
    """Return boxes [P, 4] as x1 y1 x2 y2 in pixels of the input and probabilities [P, C] of one image of a batch."""
    roles = tuple(spec.outputs)
    if roles == YOLO:
        (rows,) = (values.T for values in values(spec, outputs, row, YOLO))
        return corners(rows[:, :4]), np.ascontiguousarray(rows[:, 4:])
    if roles == YOLOV5:
        (rows,) = values(spec, outputs, row, YOLOV5)
        return corners(rows[:, :4]), np.asarray(rows[:, 4:5] * rows[:, 5:], np.float32)
    if roles == END2END:
        (rows,) = values(spec, outputs, row, END2END)
        return rows[:, :4], spread(rows[:, 5], rows[:, 4], len(spec.classes))
    if roles in (DETR, DETR_SIGMOID):
        logits, boxes = values(spec, outputs, row, roles)
        input_spec = cast(InputSpec, spec.input)
        size = np.array([input_spec.width, input_spec.height] * 2, np.float32)
        scores = decode.probabilities(logits)[:, :-1] if roles == DETR else logistic(logits)
        return corners(boxes * size), scores
    if roles in further.READERS:
        return further.READERS[roles](spec, outputs, row)
    boxes, scores = values(spec, outputs, row, OWN)
    return boxes, scores


def _single(role: str, axis: int, extra: int) -> Callable[[Outputs], Found]:
    """Find one output of three dimensions; its dimension `axis` has the classes and `extra` further numbers."""

    def find(outputs: Outputs) -> Found:
        output = one(outputs, 3, "output0", "output", "predictions")
        size = output.size(axis)
        if size is not None and size <= extra:
            raise Unfit
        return {role: output.name}, None if size is None else size - extra

    return find


def _end_to_end(outputs: Outputs) -> Found:
    output = one(outputs, 3, "output0", "output", "predictions")
    if output.size(2) not in (6, None):
        raise Unfit
    return {"end2end": output.name}, None


def _pair(boxes_role: str, scores_role: str, extra: int) -> Callable[[Outputs], Found]:
    """Find boxes [N, P, 4] and the scores of the classes [N, P, C + `extra`]."""

    def find(outputs: Outputs) -> Found:
        flat = of_rank(outputs, 3)
        boxes = [output for output in flat if output.size(2) in (4, None) and not _scores(output)]
        boxes = [output for output in boxes if "boxes" in output.name.lower()] or boxes
        others = [output for output in flat if boxes and output.name != boxes[0].name]
        others = [output for output in others if _scores(output)] or others
        if not others:
            raise Unfit
        size = others[0].size(2)
        return {boxes_role: boxes[0].name, scores_role: others[0].name}, None if size is None else size - extra

    return find


def _scores(output: Output) -> bool:
    return any(word in output.name.lower() for word in ("logit", "score"))


def _lone(axis: int, extra: int) -> Callable[[Outputs, int], bool]:
    """Check for one output with the number of labels and `extra` in a dimension, or few where there are no labels."""

    def fits(outputs: Outputs, labels: int) -> bool:
        flat = of_rank(outputs, 3)
        if len(flat) != 1:
            return False
        own, other = flat[0].shape[axis], flat[0].shape[3 - axis]
        return own == labels + extra if labels else extra < own < other and (own != 6 or axis == 1)

    return fits


def _logits(extra: int) -> Callable[[Outputs, int], bool]:
    """Check for an output called logits with a number for each label and `extra`, or with an unknown size."""

    def fits(outputs: Outputs, labels: int) -> bool:
        matches = [output for output in of_rank(outputs, 3) if "logit" in output.name.lower()]
        return bool(matches) and (not labels or matches[0].size(2) in (labels + extra, None))

    return fits


_ALL = (
    Layout("boxes", "Boxes [N, P, 4] as x1 y1 x2 y2 in pixels, and scores [N, P, C]", OWN, _pair(*OWN, 0)),
    Layout("yolo", "YOLOv8 and later: [N, 4 + C, P]", YOLO, _single("yolo", 1, 4), _lone(1, 4), "letterbox"),
    Layout("yolov5", "YOLOv5: [N, P, 5 + C]", YOLOV5, _single("yolov5", 2, 5), _lone(2, 5), "letterbox"),
    Layout(
        "end2end",
        "YOLO end to end: [N, P, 6] as x1 y1 x2 y2, score, class",
        END2END,
        _end_to_end,
        lambda outputs, _labels: len(of_rank(outputs, 3)) == 1 and of_rank(outputs, 3)[0].shape[2] == 6,
        "letterbox",
        elsewhere=(END_TO_END,),
    ),
    Layout(
        "detr",
        "DETR: logits [N, Q, C + 1] and boxes [N, Q, 4]",
        DETR,
        _pair("detr_boxes", "detr_logits", 1),
        _logits(1),
        elsewhere=("DetrForObjectDetection", "YolosForObjectDetection", "TableTransformerForObjectDetection"),
    ),
    Layout(
        "detr_sigmoid",
        "RT-DETR, D-FINE, Deformable DETR: logits [N, Q, C] and boxes [N, Q, 4]",
        DETR_SIGMOID,
        _pair("detr_boxes", "detr_sigmoid_logits", 0),
        _logits(0),
        elsewhere=(
            *("RTDetrForObjectDetection", "RTDetrV2ForObjectDetection", "DFineForObjectDetection"),
            *("DeformableDetrForObjectDetection", "ConditionalDetrForObjectDetection", "DabDetrForObjectDetection"),
            "DetaForObjectDetection",
        ),
    ),
    *further.LAYOUTS,
)
#: Detectors look at larger pictures than others, most of them without mean and deviation.
LAYOUTS = tuple(replace(layout, side=640, pixels=("unit", "bytes", "imagenet", "signed")) for layout in _ALL)
