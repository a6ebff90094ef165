"""Further ways in which detectors write their boxes; no shape tells them for sure, so they are declared or tried.

Sources: YOLOX's default export (Ge et al. 2021: offsets in cells of strides 8, 16, 32, logarithms of sizes; scores
after the logistic function), NanoDet-Plus' (Lyu 2021: for each side of a box a distribution over eight distances in
strides, Li et al. 2020), RT-DETR's by Ultralytics ([N, Q, 4 + C], boxes as centre and size in parts of the input),
exports with TensorRT's EfficientNMS (number, boxes, scores, classes), SSD's by Caffe and OpenVINO ([1, 1, n, 7]:
picture, class, score, corners in parts of the input), and boxes in parts of the input beside scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from inference.kit.contracts.layouts import Found, Layout, Output, Outputs, Unfit, of_rank, one
from inference.kit.contracts.served_task import Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.spec import InputSpec, ModelSpec
from inference.kit.task_kinds.detection.reading import Floats, corners, spread, values

YOLOX, NANODET, JOINED, SSD = ("yolox",), ("nanodet",), ("joined",), ("ssd",)
RELATIVE = ("relative_boxes", "scores")
EFFICIENT = ("det_count", "det_boxes", "det_scores", "det_classes")
BINS = 8  # distances of NanoDet, in strides: 0 to 7
STRIDES, MORE_STRIDES = (8, 16, 32), (8, 16, 32, 64)
Read = tuple[Floats, Floats]  # boxes [P, 4] as x1 y1 x2 y2 in pixels of the input, scores [P, C]


def _yolox(spec: ModelSpec, outputs: Arrays, row: int) -> Read:
    (rows,) = values(spec, outputs, row, YOLOX)
    places, steps = _cells(spec, (STRIDES,), len(rows))
    middle = (rows[:, :2] + places) * steps
    size = np.exp(np.minimum(rows[:, 2:4], 20.0)) * steps
    boxes = corners(np.concatenate([middle, size], axis=1).astype(np.float32))
    return boxes, np.asarray(rows[:, 4:5] * rows[:, 5:], np.float32)


def _nanodet(spec: ModelSpec, outputs: Arrays, row: int) -> Read:
    (rows,) = values(spec, outputs, row, NANODET)
    classes = rows.shape[1] - 4 * BINS
    places, steps = _cells(spec, (STRIDES, MORE_STRIDES), len(rows))
    shares = decode.probabilities(rows[:, classes:].reshape(-1, 4, BINS))
    reach = (shares @ np.arange(BINS, dtype=np.float32)) * steps
    middle = places * steps
    boxes = np.concatenate([middle - reach[:, :2], middle + reach[:, 2:]], axis=1)
    return np.asarray(boxes, np.float32), rows[:, :classes]


def _cells(spec: ModelSpec, choices: tuple[tuple[int, ...], ...], count: int) -> Read:
    """Return column and row of each cell [P, 2] and its stride [P, 1], of the strides that make so many cells.

    Raises:
        ValueError: none do.
    """
    input_spec = cast(InputSpec, spec.input)
    for strides in choices:
        grids = [(math.ceil(input_spec.width / step), math.ceil(input_spec.height / step), step) for step in strides]
        if sum(columns * rows for columns, rows, _step in grids) != count:
            continue
        places = [
            np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1).reshape(-1, 2) for columns, rows, _ in grids
        ]
        steps = [np.full((columns * rows, 1), step) for columns, rows, step in grids]
        return np.concatenate(places).astype(np.float32), np.concatenate(steps).astype(np.float32)
    raise ValueError(f"{count} rows are not the cells of {input_spec.width}×{input_spec.height} pixels")


def _joined(spec: ModelSpec, outputs: Arrays, row: int) -> Read:
    (rows,) = values(spec, outputs, row, JOINED)
    return corners(rows[:, :4] * _size(spec)), np.ascontiguousarray(rows[:, 4:])


def _relative(spec: ModelSpec, outputs: Arrays, row: int) -> Read:
    boxes, scores = values(spec, outputs, row, RELATIVE)
    return boxes * _size(spec), scores


def _efficient(spec: ModelSpec, outputs: Arrays, row: int) -> Read:
    count, boxes, sure, kinds = values(spec, outputs, row, EFFICIENT)
    there = int(np.clip(np.nan_to_num(count.ravel()[0]), 0, len(boxes)))
    return boxes[:there], spread(kinds[:there], sure[:there], len(spec.classes))


def _ssd(spec: ModelSpec, outputs: Arrays, row: int) -> Read:
    rows = np.asarray(outputs[spec.outputs[SSD[0]]], np.float32).reshape(-1, 7)
    rows = rows[rows[:, 0] == row]
    return rows[:, 3:] * _size(spec), spread(rows[:, 1], rows[:, 2], len(spec.classes))


def _size(spec: ModelSpec) -> Floats:
    input_spec = cast(InputSpec, spec.input)
    return np.array([input_spec.width, input_spec.height] * 2, np.float32)


READERS: Mapping[tuple[str, ...], Callable[[ModelSpec, Arrays, int], Read]] = {
    YOLOX: _yolox,
    NANODET: _nanodet,
    JOINED: _joined,
    RELATIVE: _relative,
    EFFICIENT: _efficient,
    SSD: _ssd,
}


def _lone(role: str, beside: int) -> Callable[[Outputs], Found]:
    """Find the only output of three dimensions, the last of them the classes and so many numbers."""

    def find(outputs: Outputs) -> Found:
        if len(of_rank(outputs, 3)) != 1:
            raise Unfit
        output = one(outputs, 3)
        size = output.size(2)
        if size is not None and size <= beside:
            raise Unfit
        return {role: output.name}, None if size is None else size - beside

    return find


def _two(outputs: Outputs) -> Found:
    flat = of_rank(outputs, 3)
    boxes = [output for output in flat if output.size(2) == 4 and "score" not in output.name.lower()]
    rest = [output for output in flat if boxes and output.name != boxes[0].name]
    if not rest:
        raise Unfit
    return {"relative_boxes": boxes[0].name, "scores": rest[0].name}, rest[0].size(2)


def _named(outputs: Outputs) -> Found:
    """Find count, boxes, scores and classes by their names."""

    def called(rank: tuple[int, ...], *patterns: str) -> Output:
        fit = [output for output in outputs if len(output.shape) in rank and _matches(output, patterns)]
        if not fit:
            raise Unfit
        return fit[0]

    patterns_by_rank = (((1, 2), ("num",)), ((3,), ("boxes",)), ((2,), ("score",)), ((2,), ("class", "label")))
    matches = (called(rank, *patterns) for rank, patterns in patterns_by_rank)
    return {role: output.name for role, output in zip(EFFICIENT, matches, strict=True)}, None


def _matches(output: Output, patterns: tuple[str, ...]) -> bool:
    return any(pattern in output.name.lower() for pattern in patterns)


def _sevens(outputs: Outputs) -> Found:
    fit = [output for output in of_rank(outputs, 4) if output.size(3) == 7]
    if not fit:
        raise Unfit
    return {"ssd": fit[0].name}, None


LAYOUTS = (
    Layout(
        "yolox", "YOLOX before decoding: [N, P, 5 + C]", YOLOX, _lone("yolox", 5), resize="letterbox", in_snippets=False
    ),
    Layout("joined", "RT-DETR of Ultralytics: [N, Q, 4 + C]", JOINED, _lone("joined", 4), in_snippets=False),
    Layout("nanodet", "NanoDet-Plus: [N, P, C + 32]", NANODET, _lone("nanodet", 4 * BINS), in_snippets=False),
    Layout(
        "relative",
        "Boxes [N, P, 4] relative to the input size, and scores [N, P, C]",
        RELATIVE,
        _two,
        in_snippets=False,
    ),
    Layout(
        "efficient_nms", "TensorRT's EfficientNMS: number, boxes, scores, classes", EFFICIENT, _named, in_snippets=False
    ),
    Layout("ssd", "SSD of Caffe and OpenVINO: [1, 1, n, 7]", SSD, _sevens, in_snippets=False),
)
