"""Video clips made by hand: squares that walk over black, for detectors that find what is of one colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

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
