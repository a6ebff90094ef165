"""Label Studio's run-length masks: RGBA pixels, packed by bits as the JavaScript package @thi.ng/rle-pack does.

Layout: 32 bits number of values, 5 bits word size - 1, four times 4 bits run size - 1; then runs, each 1 bit whether
one value is repeated, 2 bits which run size, the run's length - 1, and one value or that many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from datasets.shapes.outlines import is_number

MAX_PX = 1 << 27


def decode(packed: Any, width: int, height: int) -> np.ndarray:
    """The pixels (height × width, bool) whose alpha is not 0.

    Raises:
        ValueError: no list of bytes, cut off, or not of this size.
    """
    if width * height > MAX_PX or not isinstance(packed, list):
        raise ValueError("size")
    if not all(is_number(byte) and 0 <= byte <= 255 for byte in packed):
        raise ValueError("bytes")
    bits = np.unpackbits(np.array(packed, dtype=np.uint8))
    reader = _Bits(bits)
    count = reader.number(32)
    word = reader.number(5) + 1
    sizes = [reader.number(4) + 1 for _ in range(4)]
    if count != 4 * width * height or word > 8:
        raise ValueError("count")
    values = np.zeros(count, dtype=np.uint8)
    at = 0
    while at < count:
        repeated = reader.number(1)
        end = min(count, at + 1 + reader.number(sizes[reader.number(2)]))
        if repeated:
            values[at:end] = reader.number(word)
        else:
            values[at:end] = reader.read_numbers(end - at, word)
        at = end
    pixels: np.ndarray = values.reshape((height, width, 4))[..., 3] > 0
    return pixels


class _Bits:
    """Reads numbers from an array of bits, the highest bit first."""

    def __init__(self, bits: np.ndarray) -> None:
        self.bits, self.at = bits, 0

    def number(self, length: int) -> int:
        return int(self.read_numbers(1, length)[0])

    def read_numbers(self, count: int, length: int) -> np.ndarray:
        """Read `count` numbers of `length` bits each.

        Raises:
            ValueError: there are not so many.
        """
        end = self.at + count * length
        if end > len(self.bits):
            raise ValueError("cut off")
        weights = 1 << np.arange(length - 1, -1, -1, dtype=np.int64)
        numbers: np.ndarray = self.bits[self.at : end].reshape((count, length)) @ weights
        self.at = end
        return numbers
