"""Protobuf's wire format, as far as reading it needs: fields of a message, and numbers packed into one. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MOST_FIELDS = 200_000
"""Fields of one message that are looked at; a message of more was made to cost time."""
_LONGEST_VARINT = 10


class Malformed(ValueError):
    """Bytes that are no protobuf message, or one of too many fields."""


Field = tuple[int, int, Any]  # number, wire type, value: int, or a view of bytes


def fields(message: memoryview | bytes) -> Iterator[Field]:
    """The fields of a message in their order. Nothing is copied.

    Raises:
        Malformed: it ends within a field, or has more fields than any real one.
    """
    data, place, count = memoryview(message), 0, 0
    end = len(data)
    while place < end:
        count += 1
        if count > MOST_FIELDS:
            raise Malformed("too many fields")
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, place = _varint(data, place)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise Malformed("a wire type that nobody writes")
        if place + length > end:
            raise Malformed("the message ends within a field")
        yield number, kind, data[place : place + length]
        place += length


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(_LONGEST_VARINT):
        if place >= len(data):
            raise Malformed("the message ends within a number")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise Malformed("a number of too many bytes")


def signed(value: int) -> int:
    """An int64 as it was before it was written."""
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def double(value: memoryview) -> float:
    return struct.unpack("<d", value)[0]


def single(value: memoryview) -> float:
    return struct.unpack("<f", value)[0]


def text(value: memoryview, most: int) -> str:
    """At most so many characters of a string."""
    return bytes(value[: 4 * most]).decode("utf-8", "replace")[:most]


def numbers(kind: int, value: Any, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Numbers of a repeated fixed-width field, packed or single."""
    if kind == VARINT:
        return np.array([value], dtype)
    width = np.dtype(dtype).itemsize
    return np.frombuffer(value[: len(value) // width * width], dtype)


def varints(kind: int, value: Any, most: int) -> list[int]:
    """At most so many whole numbers of a repeated field, packed or single."""
    if kind == VARINT:
        return [signed(value)]
    found: list[int] = []
    place = 0
    while place < len(value) and len(found) < most:
        number, place = _varint(value, place)
        found.append(signed(number))
    return found
