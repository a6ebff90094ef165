"""Video clips made by hand: squares that walk over black, for detectors that find what is of one colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.inference import tiny
from tests.inference.pictures import RGB

SIZE = 128  # twice the input of the tiny detector: its cells are squares of 16
CELL = 16
Placed = Iterable[tuple[str, float, float]]  # colour and upper left corner of each square


def picture(placed: Placed, size: int = SIZE, cell: int = CELL) -> NDArray[np.uint8]:
    """A black picture with squares."""
    pixels = np.zeros((size, size, 3), np.uint8)
    for colour, x, y in placed:
        left, top = round(x), round(y)
        pixels[max(top, 0) : max(top + cell, 0), max(left, 0) : max(left + cell, 0)] = RGB[colour]
    return pixels


def clip(
    file: Path, placed: Callable[[float], Placed], *, seconds: float = 3.0, rate: int = 10, codec: str = "mpeg4"
) -> Path:
    """A film in which the squares stand where `placed` says at each moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(file), "w") as out:
        stream = out.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = SIZE, SIZE, "yuv420p"
        stream.bit_rate = 2_000_000
        for number in range(round(seconds * rate)):
            frame = av.VideoFrame.from_ndarray(picture(placed(number / rate)), format="rgb24")
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file


def walkers(at: float) -> Placed:
    """A red square that goes down and up again every 8 s, and a green one that goes right for ever."""
    phase = at % 8
    y = 16 + 16 * (phase if phase < 4 else 8 - phase)
    yield "red", 32, y
    yield "green", (8 * at) % 112, 104


def follower(folder: Path, size: int = 64, cell: int = 8) -> Path:
    """A box of `cell` pixels around the middle of what is of each colour, scored by how much of the box that fills."""
    rows, columns = np.mgrid[:size, :size] + 0.5
    weights = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(-1, 3).astype(np.float32)
    half = np.float32([[-cell / 2, -cell / 2, cell / 2, cell / 2]])
    nodes = [
        helper.make_node("Sub", ["images", "dim"], ["less"]),
        helper.make_node("Relu", ["less"], ["bright"]),
        helper.make_node("Reshape", ["bright", "by_colour"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["sums"]),
        helper.make_node("Slice", ["sums", "zero", "two", "axis"], ["places"]),
        helper.make_node("Slice", ["sums", "two", "three", "axis"], ["mass"]),
        helper.make_node("Max", ["mass", "little"], ["some"]),
        helper.make_node("Div", ["places", "some"], ["middle"]),
        helper.make_node("Concat", ["middle", "middle"], ["twice"], axis=2),
        helper.make_node("Add", ["twice", "half"], ["boxes"]),
        helper.make_node("Div", ["mass", "full"], ["share"]),
        helper.make_node("Mul", ["share", "own"], ["scores"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])
    outputs = [
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", 3, 4]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3, 3]),
    ]
    numbers = {"by_colour": [0, 3, size * size], "zero": [0], "two": [2], "three": [3], "axis": [2]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    constants += [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.float32([0.5]), "dim"),
        numpy_helper.from_array(np.float32([0.001]), "little"),
        numpy_helper.from_array(half, "half"),
        numpy_helper.from_array(np.float32([0.5 * cell * cell]), "full"),
        numpy_helper.from_array(np.eye(3, dtype=np.float32)[None], "own"),
    ]
    input_spec = tiny.input_of(size, mean=[0, 0, 0], std=[255, 255, 255])
    tiny.describe(
        folder,
        task="detection",
        classes=tiny.COLOURS,
        input={**input_spec, "resize": "letterbox"},
        output={"boxes": "boxes", "scores": "scores"},
    )
    return tiny.write(folder, helper.make_graph(nodes, "follower", [images], outputs, constants))
