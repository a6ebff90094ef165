"""Tensors as TensorBoard's files hold them (TensorProto), for the few shapes that summaries have. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from workers.jobs.output.reporting import protobuf

MAX_VALUES = 100_000
MAX_TEXTS = 1000
_DTYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 17: "<u2", 19: "<f2", 22: "<u4",
    23: "<u8",
}  # fmt: skip
_BFLOAT16, _HALF, _STRING = 14, 19, 7
_FIXED = {5: "<f4", 6: "<f8"}  # fields of float_val and double_val
_WHOLE = {7, 10, 11, 16, 17}  # int_val, int64_val, bool_val, uint32_val, uint64_val
_RAW = 13  # half_val: the bits of 16-bit floats


@dataclass(frozen=True)
class Tensor:
    shape: tuple[int, ...]
    values: np.ndarray[Any, np.dtype[Any]]  # flat, float64; empty for texts
    texts: list[memoryview]


def read(message: memoryview) -> Tensor | None:
    """A tensor, None of one that is too large or of a type that no summary has.

    Raises:
        Malformed: these bytes are no tensor.
    """
    dtype, content = 0, None
    shape: tuple[int, ...] = ()
    parts: list[np.ndarray[Any, np.dtype[Any]]] = []
    texts: list[memoryview] = []
    count = 0
    for number, kind, value in protobuf.fields(message):
        if number == 1 and kind == protobuf.VARINT:
            dtype = value
        elif number == 2 and kind == protobuf.BYTES:
            shape = _shape(value)
        elif number == 4 and kind == protobuf.BYTES:
            content = value
        elif number == 8 and kind == protobuf.BYTES:
            if len(texts) < MAX_TEXTS:
                texts.append(value)
        elif number in _FIXED and kind in (protobuf.BYTES, protobuf.FIXED32, protobuf.FIXED64):
            parts.append(protobuf.numbers(kind, value, _FIXED[number]).astype(float))
        elif number in _WHOLE or number == _RAW:
            integers = protobuf.varints(kind, value, MAX_VALUES)
            parts.append(_halves(integers, dtype) if number == _RAW else np.array(integers, float))
        count += len(parts[-1]) if parts else 0
        if count > MAX_VALUES:
            return None
    if dtype == _STRING:
        return Tensor(shape, np.empty(0), texts)
    values = np.concatenate(parts) if parts else np.empty(0)
    if content is not None:
        decoded = _content(content, dtype)
        if decoded is None:
            return None
        values = decoded
    size = prod(shape)
    if len(values) == 1 and 1 < size <= MAX_VALUES:  # one value stands for all
        values = np.repeat(values, size)
    return Tensor(shape, values, []) if len(values) == size and size else None


def _shape(message: memoryview) -> tuple[int, ...]:
    dims = []
    for number, kind, value in protobuf.fields(message):
        if number == 2 and kind == protobuf.BYTES:
            sizes = [
                protobuf.signed(size)
                for inner, how, size in protobuf.fields(value)
                if inner == 1 and how == protobuf.VARINT
            ]
            dims.append(max(0, sizes[0]) if sizes else 0)
        if len(dims) > 8:
            raise protobuf.Malformed("a tensor of too many dimensions")
    return tuple(dims)


def _content(content: memoryview, dtype: int) -> np.ndarray[Any, np.dtype[Any]] | None:
    if dtype == _BFLOAT16:
        return (
            (protobuf.numbers(protobuf.BYTES, content, "<u2")[:MAX_VALUES].astype("<u4") << 16)
            .view("<f4")
            .astype(float)
        )
    numpy_type = _DTYPES.get(dtype)
    if numpy_type is None or len(content) > MAX_VALUES * np.dtype(numpy_type).itemsize:
        return None
    return protobuf.numbers(protobuf.BYTES, content, numpy_type).astype(float)


def _halves(bits: list[int], dtype: int) -> np.ndarray[Any, np.dtype[Any]]:
    raw = np.array([each & 0xFFFF for each in bits], "<u2")
    return raw.view("<f2").astype(float) if dtype == _HALF else (raw.astype("<u4") << 16).view("<f4").astype(float)
