"""Tiny ONNX models made by hand: answers one can foretell, no torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, load, numpy_helper, save

COLOURS = ("red", "green", "blue")


def identity(directory: Path, width: int = 16) -> Path:
    """x [N, width] → y, the same numbers."""
    node = helper.make_node("Identity", ["x"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", width])
    return write(directory, helper.make_graph([node], "identity", [x], [y]))


def classifier(directory: Path, size: int = 8) -> Path:
    """Which colour fills the picture: logits are ten times the mean of each channel (0..1)."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"], axis=1),
        helper.make_node("Mul", ["flat", "ten"], ["logits"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    ten = numpy_helper.from_array(np.array([10.0], np.float32), "ten")
    graph = helper.make_graph(nodes, "colour", [images], [logits], [ten])
    describe(
        directory,
        task="classification",
        classes=COLOURS,
        input=input_of(size, mean=[0, 0, 0], std=[255, 255, 255]),
        output={"logits": "logits"},
    )
    return write(directory, graph)


def tagger(directory: Path, size: int = 8) -> Path:
    """Which colours are on the picture: those that fill more than a hundredth of it."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"], axis=1),
        helper.make_node("Mul", ["flat", "steep"], ["much"]),
        helper.make_node("Sub", ["much", "cut"], ["logits"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    constants = [numpy_helper.from_array(np.float32([200]), "steep"), numpy_helper.from_array(np.float32([2]), "cut")]
    describe(
        directory,
        task="tagging",
        classes=COLOURS,
        input=input_of(size, mean=[0, 0, 0], std=[255, 255, 255]),
        output={"logits": "logits"},
        decode={"score_threshold": 0.5},
    )
    return write(directory, helper.make_graph(nodes, "colours", [images], [logits], constants))


def detector(directory: Path, size: int = 64, cell: int = 8) -> Path:
    """A box of `cell` pixels on each grid cell, scored by how full of each colour the cell is."""
    grid = size // cell
    corners = np.stack(np.meshgrid(np.arange(grid), np.arange(grid)), -1).reshape(-1, 2) * cell
    boxes = np.concatenate([corners, corners + cell], 1).astype(np.float32)[None]
    nodes = [
        helper.make_node("AveragePool", ["images"], ["pooled"], kernel_shape=[cell] * 2, strides=[cell] * 2),
        helper.make_node("Flatten", ["pooled"], ["flat"], axis=1),
        helper.make_node("Reshape", ["flat", "by_class"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("Shape", ["images"], ["n"], start=0, end=1),
        helper.make_node("Concat", ["n", "ones"], ["times"], axis=0),
        helper.make_node("Tile", ["grid", "times"], ["boxes"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    out = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", grid * grid, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", grid * grid, 3]),
    ]
    constants = [
        numpy_helper.from_array(boxes, "grid"),
        numpy_helper.from_array(np.array([0, 3, grid * grid], np.int64), "by_class"),
        numpy_helper.from_array(np.array([1, 1], np.int64), "ones"),
    ]
    describe(
        directory,
        task="detection",
        classes=COLOURS,
        input=input_of(size, mean=[0, 0, 0], std=[255, 255, 255]),
        output={"boxes": "boxes", "scores": "scores"},
    )
    return write(directory, helper.make_graph(nodes, "cells", [images], out, constants))


def segmenter(directory: Path, size: int = 64, cell: int = 4, resize: str = "stretch") -> Path:
    """Each cell is of the colour that fills most of it, or ground where none fills 30 % of it."""
    weights = np.concatenate([np.zeros((1, 3)), np.eye(3)]).astype(np.float32)[..., None, None]
    nodes = [
        helper.make_node("AveragePool", ["images"], ["pooled"], kernel_shape=[cell] * 2, strides=[cell] * 2),
        helper.make_node("Conv", ["pooled", "weights", "bias"], ["logits"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 4, size // cell, size // cell])
    constants = [
        numpy_helper.from_array(10 * weights, "weights"),
        numpy_helper.from_array(np.array([3, 0, 0, 0], np.float32), "bias"),
    ]
    describe(
        directory,
        task="segmentation",
        classes=COLOURS,
        input={**input_of(size, mean=[0, 0, 0], std=[255, 255, 255]), "resize": resize},
        output={"logits": "logits"},
    )
    return write(directory, helper.make_graph(nodes, "colours", [images], [logits], constants))


def pointer(directory: Path, size: int = 64) -> Path:
    """Each colour is a class with one point, the middle of what is of that colour, and scored by how much that is.

    It looks at objects, with a quarter of their box around them.
    """
    rows, columns = np.mgrid[:size, :size] + 0.5
    weights = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(-1, 3).astype(np.float32)
    nodes = [
        helper.make_node("Sub", ["images", "dim"], ["less"]),
        helper.make_node("Relu", ["less"], ["bright"]),  # what is grey is of no colour
        helper.make_node("Reshape", ["bright", "by_colour"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["sums"]),
        helper.make_node("Slice", ["sums", "zero", "two", "axis"], ["places"]),
        helper.make_node("Slice", ["sums", "two", "three", "axis"], ["mass"]),
        helper.make_node("Add", ["mass", "one"], ["more"]),
        helper.make_node("Max", ["mass", "little"], ["some"]),
        helper.make_node("Div", ["places", "some"], ["means"]),
        helper.make_node("Div", ["mass", "more"], ["sure"]),
        helper.make_node("Concat", ["means", "sure"], ["points"], axis=2),
        helper.make_node("Reshape", ["mass", "by_class"], ["likely"]),
        helper.make_node("Softmax", ["likely"], ["kinds"], axis=1),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    outputs = [
        helper.make_tensor_value_info("points", TensorProto.FLOAT, ["n", 3, 3]),
        helper.make_tensor_value_info("kinds", TensorProto.FLOAT, ["n", 3]),
    ]
    numbers = {"by_colour": [0, 3, size * size], "by_class": [0, 3], "zero": [0], "two": [2], "three": [3], "axis": [2]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    constants += [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.float32([1]), "one")]
    constants += [numpy_helper.from_array(np.float32([0.6]), "dim")]
    constants.append(numpy_helper.from_array(np.float32([0.001]), "little"))
    described = [
        {"id": number, "name": name, "keypoints": [f"middle_of_{name}"], "skeleton": []}
        for number, name in enumerate(COLOURS, 1)
    ]
    input_spec = {**input_of(size, mean=[0, 0, 0], std=[255, 255, 255]), "resize": "letterbox"}
    describe(
        directory,
        task="keypoints",
        classes=COLOURS,
        input={**input_spec, "scope": "object", "margin": 0.25},
        output={"points": "points", "classes": "kinds"},
    )
    description = json.loads((directory / "model.json").read_text())
    (directory / "model.json").write_text(json.dumps({**description, "classes": described}))
    return write(directory, helper.make_graph(nodes, "middles", [images], outputs, constants))


def embedder(directory: Path, size: int = 8) -> Path:
    """The direction of the mean colour; four known images of each, the later the further from the pure colour."""
    reference_vectors = np.stack(
        [np.eye(3)[c] * (1 - 0.1 * k) + 0.1 * k * np.eye(3)[(c + 1) % 3] for c in range(3) for k in range(4)]
    )
    reference_vectors = (reference_vectors / np.linalg.norm(reference_vectors, axis=1, keepdims=True)).astype(
        np.float32
    )
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"], axis=1),
        helper.make_node("LpNormalization", ["flat"], ["vectors"], axis=1, p=2),
        helper.make_node("MatMul", ["vectors", "known"], ["similarity"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    outputs = [
        helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 3]),
        helper.make_tensor_value_info("similarity", TensorProto.FLOAT, ["n", 12]),
    ]
    known_images = [f"{name}-{number}" for name in COLOURS for number in range(4)]
    describe(
        directory,
        task="embedding",
        classes=COLOURS,
        input=input_of(size, mean=[0, 0, 0], std=[255, 255, 255]),
        output={"vector": "vectors", "similarity": "similarity"},
        gallery={"classes": [index // 4 for index in range(12)], "images": known_images},
    )
    constants = [numpy_helper.from_array(np.ascontiguousarray(reference_vectors.T), "known")]
    return write(directory, helper.make_graph(nodes, "directions", [images], outputs, constants))


def brightness(folder: Path, size: int = 64, cell: int = 8, resize: str = "stretch") -> Path:
    """What is bright is unusual: the map is the mean of each cell (0..1), the score its highest."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["grey"], axes=[1], keepdims=1),
        helper.make_node("AveragePool", ["grey"], ["pooled"], kernel_shape=[cell] * 2, strides=[cell] * 2),
        helper.make_node("Squeeze", ["pooled", "one"], ["map"]),
        helper.make_node("ReduceMax", ["map"], ["score"], axes=[1, 2], keepdims=0),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    outputs = [
        helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n"]),
        helper.make_tensor_value_info("map", TensorProto.FLOAT, ["n", size // cell, size // cell]),
    ]
    axis = numpy_helper.from_array(np.array([1], np.int64), "one")
    describe(
        folder,
        task="anomaly",
        classes=("red",),
        input={**input_of(size, mean=[0, 0, 0], std=[255, 255, 255]), "resize": resize},
        output={"score": "score", "map": "map"},
        decode={"score_threshold": 0.5},
    )
    return write(folder, helper.make_graph(nodes, "brightness", [images], outputs, [axis]))


def instancer(directory: Path, size: int = 64, cell: int = 8) -> Path:
    """The detector's boxes; each object's mask is where the picture is of any colour, in cells of two pixels."""
    detector(directory, size, cell)
    graph_ = load(str(directory / "model.onnx")).graph
    places = (size // cell) ** 2
    nodes = [
        helper.make_node("AveragePool", ["images"], ["halves"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["halves", "weights", "bias"], ["prototypes"]),
        helper.make_node("Tile", ["equal", "times"], ["coefficients"]),
    ]
    out = [
        helper.make_tensor_value_info("coefficients", TensorProto.FLOAT, ["n", places, 3]),
        helper.make_tensor_value_info("prototypes", TensorProto.FLOAT, ["n", 3, size // 2, size // 2]),
    ]
    constants = [
        numpy_helper.from_array(10 * np.eye(3, dtype=np.float32)[..., None, None], "weights"),
        numpy_helper.from_array(np.full(3, -0.5, np.float32), "bias"),
        numpy_helper.from_array(np.ones((1, places, 3), np.float32), "equal"),
    ]
    roles = ("boxes", "scores", "coefficients", "prototypes")
    input_spec = input_of(size, mean=[0, 0, 0], std=[255, 255, 255])
    describe(directory, task="instances", classes=COLOURS, input=input_spec, output={role: role for role in roles})
    graph = helper.make_graph(
        [*graph_.node, *nodes], "objects", graph_.input, [*graph_.output, *out], [*graph_.initializer, *constants]
    )
    return write(directory, graph)


def input_of(size: int, *, mean: list[float], std: list[float]) -> dict[str, object]:
    return {
        "name": "images", "height": size, "width": size, "channels": 3, "dtype": "float32", "layout": "NCHW",
        "mean": mean, "std": std, "resize": "stretch",
    }  # fmt: skip


def describe(directory: Path, *, classes: tuple[str, ...], **fields: object) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    described = {
        "format": 1,
        "architecture": "tiny",
        "preset": "tiny",
        "classes": [{"id": i + 1, "name": name} for i, name in enumerate(classes)],
        "decode": {"score_threshold": 0.3, "iou_threshold": 0.5, "max_detections": 300},
        "metrics": {},
        "verify": {"samples": 1, "max_abs_diff": 0.0},
        "params": {},
        **fields,
    }
    (directory / "model.json").write_text(json.dumps(described))


def write(directory: Path, graph: object) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    save(model, str(directory / "model.onnx"))
    return directory
