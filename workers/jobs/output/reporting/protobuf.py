"""Protobuf's wire format, as far as reading it needs: fields of a message, and numbers packed into one. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 200_000
"""Fields of one message that are looked at; a message of more was made to cost time."""
_MAX_VARINT_LENGTH = 10


class Malformed(ValueError):
    """Bytes that are no protobuf message, or one of too many fields."""


Field = tuple[int, int, Any]  # number, wire type, value: int, or a view of bytes


def fields(message: memoryview | bytes) -> Iterator[Field]:
    """The fields of a message in their order. Nothing is copied.

    Raises:
        Malformed: it ends within a field, or has more fields than any real one.
    """
    data, offset, count = memoryview(message), 0, 0
    end = len(data)
    while offset < end:
        count += 1
        if count > MAX_FIELDS:
            raise Malformed("too many fields")
        tag, offset = _varint(data, offset)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, offset = _varint(data, offset)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, offset = _varint(data, offset)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise Malformed("a wire type that nobody writes")
        if offset + length > end:
            raise Malformed("the message ends within a field")
        yield number, kind, data[offset : offset + length]
        offset += length


def _varint(data: memoryview, offset: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(_MAX_VARINT_LENGTH):
        if offset >= len(data):
            raise Malformed("the message ends within a number")
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
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


def text(value: memoryview, limit: int) -> str:
    """At most `limit` characters of a string."""
    return bytes(value[: 4 * limit]).decode("utf-8", "replace")[:limit]


def numbers(kind: int, value: Any, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Numbers of a repeated fixed-width field, packed or single."""
    if kind == VARINT:
        return np.array([value], dtype)
    width = np.dtype(dtype).itemsize
    return np.frombuffer(value[: len(value) // width * width], dtype)


def varints(kind: int, value: Any, limit: int) -> list[int]:
    """At most `limit` integers of a repeated field, packed or single."""
    if kind == VARINT:
        return [signed(value)]
    numbers: list[int] = []
    offset = 0
    while offset < len(value) and len(numbers) < limit:
        number, offset = _varint(value, offset)
        numbers.append(signed(number))
    return numbers
