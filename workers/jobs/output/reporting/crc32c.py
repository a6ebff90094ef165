"""The checksum of TensorBoard's records: CRC-32C, masked. Pure.

Long messages are cut into lanes of equal length that NumPy takes through the table side by side; what the lanes give is
then put together, as shifting a CRC by so many zero bytes is a linear map.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_LANES, _WORTH_LANES = 256, 8192


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        rows.append(byte)
    return rows


_TABLE = _table()
_ARRAY = np.array(_TABLE, np.uint32)


def masked(data: bytes | memoryview) -> int:
    """The masked checksum, as it is stored in the file."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def crc32c(data: bytes | memoryview) -> int:
    state = 0xFFFFFFFF
    if len(data) >= _WORTH_LANES:
        length = len(data) // _LANES
        state = _in_lanes(np.frombuffer(data, np.uint8, length * _LANES).reshape(_LANES, length), state)
        data = data[length * _LANES :]
    for byte in bytes(data):
        state = _TABLE[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def _in_lanes(lanes: np.ndarray[Any, np.dtype[np.uint8]], state: int) -> int:
    each = np.zeros(len(lanes), np.uint32)
    each[0] = state
    for column in np.ascontiguousarray(lanes.T):
        each = _ARRAY[(each ^ column) & 0xFF] ^ (each >> np.uint32(8))
    shift, total = _zeros(lanes.shape[1]), 0
    for value in each.tolist():
        total = _times(shift, total) ^ value
    return total


@cache
def _zeros(length: int) -> tuple[int, ...]:
    """The map that so many zero bytes are, as 32 columns."""
    power = tuple(_TABLE[(1 << bit) & 0xFF] ^ ((1 << bit) >> 8) for bit in range(32))  # one byte
    columns = tuple(1 << bit for bit in range(32))
    while length:
        if length & 1:
            columns = tuple(_times(power, column) for column in columns)
        power = tuple(_times(power, column) for column in power)
        length >>= 1
    return columns


def _times(columns: tuple[int, ...], value: int) -> int:
    product = bit = 0
    while value:
        if value & 1:
            product ^= columns[bit]
        value >>= 1
        bit += 1
    return product
