"""Read Protocol Buffers in place: fields and spans, nothing copied."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

Span = tuple[int, int]  # begin and end of a length-delimited field


class Damaged(Exception):
    """The bytes are not valid Protocol Buffers."""


def fields(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, int | Span]]:
    """Field numbers and values of one message: whole numbers as they are, texts and messages as spans.

    Raises:
        Damaged: a field reaches beyond its message, or is of no known wire type.
    """
    at = begin
    while at < end:
        key, at = _varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at, end)
            yield number, value
        elif kind == 2:
            size, at = _varint(data, at, end)
            if size > end - at:
                raise Damaged(_("A field is longer than its message."))
            yield number, (at, at + size)
            at += size
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            if width > end - at:
                raise Damaged(_("The file ends inside a number."))
            yield number, (at, at + width)
            at += width
        else:
            raise Damaged(_("The file contains fields of an unknown type."))


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Damaged(_("The file ends inside a number."))


def signed(value: int) -> int:
    """An int64 field's value."""
    return value - (1 << 64) if value >= 1 << 63 else value


def numbers(data: memoryview, value: int | Span, *, max_count: int) -> list[int]:
    """A repeated int64 field, packed or not.

    Raises:
        Damaged: more than `max_count` numbers.
    """
    if isinstance(value, int):
        return [signed(value)]
    values: list[int] = []
    at, end = value
    while at < end:
        if len(values) == max_count:
            raise Damaged(_("A list of numbers in the file is too long."))
        number, at = _varint(data, at, end)
        values.append(signed(number))
    return values


def text(data: memoryview, value: int | Span, *, max_bytes: int = 4096) -> str:
    """A text field.

    Raises:
        Damaged: not text, or longer than `max_bytes` bytes.
    """
    if isinstance(value, int) or value[1] - value[0] > max_bytes:
        raise Damaged(_("The file contains an invalid name."))
    try:
        return bytes(data[value[0] : value[1]]).decode()
    except UnicodeDecodeError:
        raise Damaged(_("The file contains a name that is not text.")) from None
