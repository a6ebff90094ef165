"""ONNX models from elsewhere that find one box, surest when pixels and resize are as they were trained with.

Each looks at the mean of its input: what it answers is a constant, in one of the layouts, but its score falls with the
distance of that mean from the one that the right way gives for `picture()`.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from PIL import Image

from datasets.models import DatasetVersion
from inference.kit.model_io import decode
from inference.kit.model_io.spec import InputSpec
from inference.registry.formats.declared import PIXELS
from tests.datasets.helpers import imported, zipped
from tests.factories import datasets

SIDE, CLASSES, KIND = 128, ("ant", "bee", "cat", "dog", "elk", "fox", "gnu"), 3
NAMES = {
    "detr": ("logits", "pred_boxes"),
    "detr_sigmoid": ("logits", "pred_boxes"),
    "efficient_nms": ("num_dets", "det_boxes", "det_scores", "det_classes"),
    "boxes": ("boxes", "scores"),
    "relative": ("boxes", "scores"),
}
WIDTH, HEIGHT, BOX = 200, 120, (60.0, 24.0, 140.0, 96.0)  # of the picture, and of what is on it
LAYOUTS = (
    "boxes", "yolo", "yolov5", "end2end", "detr", "detr_sigmoid", "yolox", "joined", "nanodet", "relative",
    "efficient_nms", "ssd",
)  # fmt: skip


def picture(width: int = WIDTH, height: int = HEIGHT, box: Sequence[float] = BOX, seed: int = 0) -> bytes:
    """A PNG with something bright at a box, on a dark ground."""
    pixels = np.random.default_rng(seed).integers(20, 40, (height, width, 3), np.uint8)
    x1, y1, x2, y2 = (round(side) for side in box)
    pixels[y1:y2, x1:x2] = (230, 160, 90)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def spec(pixels: str, resize: str, side: int = SIDE) -> InputSpec:
    mean, std, order = PIXELS[pixels]
    return InputSpec("images", side, side, 3, mean, std, resize, blue_first=order == "BGR")  # type: ignore[arg-type]  # one of the two


def model(
    path: Path, layout: str, pixels: str = "unit", resize: str = "letterbox", side: int = SIDE, *, first_alone=False
) -> Path:
    """The model that is right for a layout, pixels and resize alone; `first_alone`: it sees its first channel only."""
    sample, placement = decode.preprocess(decode.open_image(picture()), spec(pixels, resize, side))
    scales, offsets = (placement.scale_x, placement.scale_y) * 2, (placement.offset_x, placement.offset_y) * 2
    box = np.array(BOX, np.float32) * scales + offsets
    target = float(sample[0].mean() if first_alone else sample.mean())
    near = 0.05 * max(abs(target), 0.2)
    return write(path, arrays(layout, box, side), target, near, side, NAMES.get(layout), first_alone=first_alone)


def arrays(layout: str, box: np.ndarray, side: int = SIDE) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each output its numbers when nothing is found, and what is added to them when the box is."""
    c, cells = len(CLASSES), sum(math.ceil(side / s) ** 2 for s in (8, 16, 32))
    centre = np.concatenate([(box[:2] + box[2:]) / 2, box[2:] - box[:2]])
    unit, part = box / side, centre / side

    def zero(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    if layout in ("boxes", "relative"):
        boxes, detected = zero(1, 50, 4), zero(1, 50, c)
        boxes[0, 8], detected[0, 8, KIND] = unit if layout == "relative" else box, 0.9
        return [(boxes, 0 * boxes), (0 * detected, detected)]
    if layout == "yolo":
        rows, detected = zero(1, 4 + c, cells), zero(1, 4 + c, cells)
        rows[0, :4, 50], detected[0, 4 + KIND, 50] = centre, 0.9
        return [(rows, detected)]
    if layout in ("yolov5", "yolox", "joined"):
        count = {"yolov5": 3 * cells, "yolox": cells, "joined": 300}[layout]
        beside = 4 if layout == "joined" else 5
        rows, detected = zero(1, count, beside + c), zero(1, count, beside + c)
        at, step = 5 * (side // 8) + 6, 8  # the cell of column 6, row 5
        offset = [centre[0] / step - 6, centre[1] / step - 5, np.log(centre[2] / step), np.log(centre[3] / step)]
        rows[0, at, :4] = {"yolov5": centre, "yolox": offset, "joined": part}[layout]
        if beside == 5:
            rows[0, at, 5 + KIND] = 1.0
        detected[0, at, 4 if beside == 5 else 4 + KIND] = 0.9
        return [(rows, detected)]
    if layout == "end2end":
        rows, detected = zero(1, 40, 6), zero(1, 40, 6)
        rows[0, 0], detected[0, 0, 4] = [*box, 0, KIND], 0.9
        return [(rows, detected)]
    if layout in ("detr", "detr_sigmoid"):
        ground = layout == "detr"
        logits, detected = zero(1, 30, c + ground) - 6, zero(1, 30, c + ground)
        if ground:
            logits[0, :, -1] = 6
            detected[0, 9, -1] = -6
        detected[0, 9, KIND] = 9
        boxes = zero(1, 30, 4) + 0.1
        boxes[0, 9] = part
        return [(logits, detected), (boxes, 0 * boxes)]
    if layout == "nanodet":
        return _nanodet(box, side, cells, c)
    if layout == "efficient_nms":
        boxes, detected, kinds = zero(1, 20, 4), zero(1, 20), zero(1, 20)
        boxes[0, 0], detected[0, 0], kinds[0, 0] = box, 0.9, KIND
        count = np.array([[1.0]], np.float32)
        return [(count, 0 * count), (boxes, 0 * boxes), (0 * detected, detected), (kinds, 0 * kinds)]
    rows, detected = zero(1, 1, 30, 7), zero(1, 1, 30, 7)
    rows[..., 0] = -1
    rows[0, 0, 0], detected[0, 0, 0, 2] = [0, KIND, 0, *unit], 0.9
    return [(rows, detected)]


def _nanodet(box: np.ndarray, side: int, cells: int, classes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = np.zeros((1, cells, classes + 32), np.float32)
    scores, step = np.zeros_like(rows), 16
    across, down = (round(float(middle)) // step for middle in (box[:2] + box[2:]) / 2)
    at = (side // 8) ** 2 + down * (side // step) + across
    reach = [across * step - box[0], down * step - box[1], box[2] - across * step, box[3] - down * step]
    for index, distance in enumerate(reach):
        bin_index, rest = divmod(float(distance) / step, 1)
        own = np.full(8, -20, np.float32)
        own[int(bin_index)], own[min(int(bin_index) + 1, 7)] = np.log(max(1 - rest, 1e-9)), np.log(max(rest, 1e-9))
        rows[0, at, classes + 8 * index : classes + 8 * index + 8] = own
    scores[0, at, KIND] = 0.9
    return [(rows, scores)]


def write(
    path: Path,
    outputs: Sequence[tuple[np.ndarray, np.ndarray]],
    target: float,
    near: float,
    side: int | None = SIDE,
    names: Sequence[str] | None = None,
    *,
    first_alone: bool = False,
) -> Path:
    """A graph that adds the second numbers of each output as far as the mean of the input is `near` to `target`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    constants = [
        numpy_helper.from_array(np.float32(value), name) for name, value in (("target", target), ("near", near))
    ]
    constants += [numpy_helper.from_array(np.float32(1), "whole")]
    constants.append(numpy_helper.from_array(np.array([0], np.int64), "channel"))
    nodes = [
        helper.make_node("Gather", ["images", "channel"], ["channels"], axis=1),
        helper.make_node("ReduceMean", ["channels" if first_alone else "images"], ["mean"], keepdims=0),
        helper.make_node("Sub", ["mean", "target"], ["far"]),
        helper.make_node("Abs", ["far"], ["distance"]),
        helper.make_node("Div", ["distance", "near"], ["share"]),
        helper.make_node("Sub", ["whole", "share"], ["left"]),
        helper.make_node("Relu", ["left"], ["seen"]),
    ]
    ends = []
    for index, (ground, detected) in enumerate(outputs):
        name = (names or [f"output{n}" for n in range(len(outputs))])[index]
        for word, value in (("ground", ground), ("found", detected)):
            constants.append(numpy_helper.from_array(np.asarray(value, np.float32), f"{word}{index}"))
        nodes.append(helper.make_node("Mul", [f"found{index}", "seen"], [f"more{index}"]))
        nodes.append(helper.make_node("Add", [f"ground{index}", f"more{index}"], [name]))
        ends.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(ground.shape)))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side or "height", side or "width"])
    graph = helper.make_graph(nodes, "seeing", [images], ends, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    save(made, str(path))
    return path


def annotated(owner) -> DatasetVersion:
    """A version of an empty picture and two with their box annotated."""
    boxes = [{"id": n, "image_id": n, "category_id": 9, "bbox": [60, 24, 80, 72]} for n in (1, 2)]
    images = [{"id": n, "file_name": f"{n}.png", "width": WIDTH, "height": HEIGHT} for n in (0, 1, 2)]
    kinds = [{"id": 9, "name": CLASSES[KIND]}, {"id": 4, "name": "bee"}]
    coco = {"images": images, "annotations": boxes, "categories": kinds}
    files = {f"{n}.png": picture(seed=n) for n in (1, 2)} | {"0.png": picture(box=(0, 0, 0, 0))}
    row = imported(datasets.dataset(owner, "shelf"), zipped({"a.json": json.dumps(coco), **files}))
    assert row.state == "done", row.error
    return row.version


def labelled(owner) -> DatasetVersion:
    """A version of dark and light pictures, by their folders."""
    dark = [picture(box=(0, 0, 0, 0), seed=seed) for seed in (1, 2)]
    light = [picture(box=(0, 0, WIDTH, HEIGHT), seed=seed) for seed in (3, 4)]
    files = {f"{name}/{n}.png": data for name, own in (("dark", dark), ("light", light)) for n, data in enumerate(own)}
    row = imported(datasets.dataset(owner, "shades"), zipped(files))
    assert row.state == "done", row.error
    return row.version


def classifier(path: Path, pixels: str, *, shares: bool) -> Path:
    """Whether a picture is light: as light as one is under `pixels`; what it answers are shares, or logits."""
    light = decode.open_image(picture(box=(0, 0, WIDTH, HEIGHT)))
    target = float(decode.preprocess(light, spec(pixels, "stretch"))[0].mean())
    ground, detected = ([0.95, 0.05], [-0.9, 0.9]) if shares else ([3.0, 0.0], [-3.0, 3.0])
    return write(path, [(np.array([ground]), np.array([detected]))], target, 0.1 * abs(target))


def free(path: Path) -> Path:
    """A YOLO whose file says no size."""
    rows = np.zeros((1, 11, 8400), np.float32)
    return write(path, [(rows, rows)], 0.5, 0.1, None)


def endless(path: Path) -> Path:
    """A loop that goes on for ever, and would answer as YOLO does."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["goes"]), helper.make_node("Sin", ["turn"], ["turned"])],
        "body",
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("turn", TensorProto.FLOAT, [1, 11, 336]),
        ],
        [
            helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
            helper.make_tensor_value_info("turned", TensorProto.FLOAT, [1, 11, 336]),
        ],
    )
    constants = [
        numpy_helper.from_array(np.array(2**62, np.int64), "times"),
        numpy_helper.from_array(np.array(True), "yes"),
        numpy_helper.from_array(np.zeros((1, 11, 336), np.float32), "zeros"),
    ]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Add", ["zeros", "mean"], ["begin"]),
        helper.make_node("Loop", ["times", "yes", "begin"], ["output0"], body=body),
    ]
    return _saved(path, nodes, [("output0", [1, 11, 336])], constants)


def huge(path: Path) -> Path:
    """One that says it answers as YOLO does, and answers 800 GB."""
    constants = [numpy_helper.from_array(np.array([1, 100, 2_000_000_000], np.int64), "shape")]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Expand", ["mean", "shape"], ["output0"]),
    ]
    return _saved(path, nodes, [("output0", [1, 11, "cells"])], constants)


def evil(path: Path, how: str) -> Path:
    """A file that must not come to a job."""
    if how == "text":
        path.write_bytes(b"This is no model.")
        return path
    nodes = [helper.make_node("Identity", ["images"], ["output0"], domain="evil" if how == "custom" else "")]
    weight = numpy_helper.from_array(np.zeros(1, np.float32), "weight")
    if how == "external":
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="/etc/passwd")
    return _saved(path, nodes, [("output0", [1, 11, 336])], [weight])


def bomb() -> bytes:
    """A PNG of 60 000 × 60 000 pixels in a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")


def _saved(path: Path, nodes: list, outputs: list, constants: list, side: int = SIDE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side, side])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs]
    graph = helper.make_graph(nodes, "seeing", [images], ends, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("evil", 1)]
    made = helper.make_model(graph, opset_imports=opsets[: 1 + any(node.domain for node in nodes)])
    made.ir_version = 8
    path.write_bytes(made.SerializeToString())
    return path
