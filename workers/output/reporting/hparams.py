"""Hyper-parameters as TensorBoard's plugin of that name writes them. Pure."""

from __future__ import annotations

from typing import Any

from workers.output.reporting import wire

MOST = 500
LONGEST_TEXT = 300
_SESSION_BEGINS, _HPARAMS, _KEY, _VALUE = 3, 1, 1, 2
_NUMBER, _TEXT, _BOOL = 2, 3, 4


def read(content: memoryview) -> dict[str, Any]:
    """What a session was begun with; empty where the message says something else.

    Raises:
        Malformed: these bytes are no such message.
    """
    found: dict[str, Any] = {}
    for number, kind, session in wire.fields(content):
        if number != _SESSION_BEGINS or kind != wire.BYTES:
            continue
        for inner, how, entry in wire.fields(session):
            if inner == _HPARAMS and how == wire.BYTES and len(found) < MOST:
                name, value = _entry(entry)
                found[name] = value
    return found


def _entry(message: memoryview) -> tuple[str, Any]:
    name, value = "", None
    for number, kind, part in wire.fields(message):
        if number == _KEY and kind == wire.BYTES:
            name = wire.text(part, 100)
        elif number == _VALUE and kind == wire.BYTES:
            value = _value(part)
    return name, value


def _value(message: memoryview) -> Any:
    for number, kind, part in wire.fields(message):
        if number == _NUMBER and kind == wire.FIXED64:
            return wire.double(part)
        if number == _TEXT and kind == wire.BYTES:
            return wire.text(part, LONGEST_TEXT)
        if number == _BOOL and kind == wire.VARINT:
            return bool(part)
    return None
