"""Hyper-parameters as TensorBoard's plugin of that name writes them. Pure."""

from __future__ import annotations

from typing import Any

from workers.jobs.output.reporting import protobuf

MAX_PARAMS = 500
MAX_TEXT_LENGTH = 300
_SESSION_BEGINS, _HPARAMS, _KEY, _VALUE = 3, 1, 1, 2
_NUMBER, _TEXT, _BOOL = 2, 3, 4


def read(content: memoryview) -> dict[str, Any]:
    """Parameters that a session was started with; empty for other messages.

    Raises:
        Malformed: these bytes are no such message.
    """
    params: dict[str, Any] = {}
    for number, kind, session in protobuf.fields(content):
        if number != _SESSION_BEGINS or kind != protobuf.BYTES:
            continue
        for inner, how, entry in protobuf.fields(session):
            if inner == _HPARAMS and how == protobuf.BYTES and len(params) < MAX_PARAMS:
                name, value = _entry(entry)
                params[name] = value
    return params


def _entry(message: memoryview) -> tuple[str, Any]:
    name, value = "", None
    for number, kind, part in protobuf.fields(message):
        if number == _KEY and kind == protobuf.BYTES:
            name = protobuf.text(part, 100)
        elif number == _VALUE and kind == protobuf.BYTES:
            value = _value(part)
    return name, value


def _value(message: memoryview) -> Any:
    for number, kind, part in protobuf.fields(message):
        if number == _NUMBER and kind == protobuf.FIXED64:
            return protobuf.double(part)
        if number == _TEXT and kind == protobuf.BYTES:
            return protobuf.text(part, MAX_TEXT_LENGTH)
        if number == _BOOL and kind == protobuf.VARINT:
            return bool(part)
    return None
