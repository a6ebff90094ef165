"""TensorBoard's event files: records one after the other, each a protobuf message with its checksum. Pure.

Written by `torch.utils.tensorboard`, TensorFlow, Keras, Lightning, the HuggingFace Trainer, Ultralytics and many more.
The records are read from where the last look ended; one that is not whole yet is waited for.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.jobs.output.reporting import crc32c, graphs, histograms, hparams, protobuf, tensors
from workers.jobs.output.reporting.harvest import Harvest, Shown, Source, name_of, step_of
from workers.jobs.output.reporting.watched import Watched

MAX_RECORD_BYTES = 32 * 1024 * 1024
MAX_TEXT_BYTES = 16 * 1024
MAX_VALUES = 5000
"""Values of one record; more are not looked at."""
_HEADER, _FOOTER = 12, 4
NOTHING = memoryview(b"")
_PNG, _JPEG, _GIF = b"\x89PNG", b"\xff\xd8\xff", b"GIF8"


def read(watched: Watched, harvest: Harvest) -> None:
    """Ingest complete records from where the last pass ended."""
    source = Source("events", watched.folder)
    while not harvest.is_full:
        header = os.pread(watched.descriptor, _HEADER, watched.position)
        if len(header) < _HEADER:
            return
        length, checksum = struct.unpack("<QI", header)
        if crc32c.masked(header[:8]) != checksum:
            if not watched.is_fresh:  # else it may be half written
                harvest.miss("file_broken")
                watched.give_up()
            return
        behind = watched.position + _HEADER + length + _FOOTER
        if behind > watched.size:
            return
        if length > MAX_RECORD_BYTES:
            harvest.miss("record_too_large")
        else:
            data = os.pread(watched.descriptor, length + _FOOTER, watched.position + _HEADER)
            if len(data) < length + _FOOTER:
                return
            is_intact = crc32c.masked(memoryview(data)[:length]) == struct.unpack("<I", data[length:])[0]
            if not is_intact and behind == watched.size and watched.is_fresh:
                return
            _record(memoryview(data)[:length], source, harvest) if is_intact else harvest.miss("record_broken")
            harvest.taken += length
        harvest.taken += _HEADER + _FOOTER
        watched.position = behind


def _record(data: memoryview, source: Source, harvest: Harvest) -> None:
    try:
        event = _Event.parse(data)
        for value in event.values:
            _value(value, event, source, harvest)
        if event.graph is not None and (parsed := graphs.parsed(event.graph)):
            facts, nodes = parsed
            harvest.show(Shown("graph", name_of(source.place), max(0, event.step), event.at, facts, nodes))
    except protobuf.Malformed:
        harvest.miss("record_broken")


@dataclass
class _Event:
    at: float
    step: int
    values: list[memoryview]
    graph: memoryview | None

    @classmethod
    def parse(cls, data: memoryview) -> _Event:
        event = cls(0.0, 0, [], None)
        for number, kind, value in protobuf.fields(data):
            if number == 1 and kind == protobuf.FIXED64:
                event.at = protobuf.double(value)
            elif number == 2 and kind == protobuf.VARINT:
                event.step = step_of(protobuf.signed(value)) or 0
            elif number == 4 and kind == protobuf.BYTES:
                event.graph = value
            elif number == 5 and kind == protobuf.BYTES:
                parts = (part for inner, how, part in protobuf.fields(value) if inner == 1 and how == protobuf.BYTES)
                event.values = [part for _, part in zip(range(MAX_VALUES), parts, strict=False)]
        return event


@dataclass
class _Value:
    tag: str = ""
    simple: float | None = None
    image: memoryview | None = None
    histogram: memoryview | None = None
    tensor: memoryview | None = None
    has_audio: bool = False
    plugin: str = ""
    content: memoryview = NOTHING


def _value(message: memoryview, event: _Event, source: Source, harvest: Harvest) -> None:
    value = _parts(message)
    if value.plugin == "hparams":
        if params := hparams.read(value.content):
            harvest.show(Shown("params", "hparams", 0, event.at, {"values": params}))
    elif value.simple is not None:
        _point(value.tag, value.simple, event, source, harvest)
    elif value.image is not None:
        for number, kind, part in protobuf.fields(value.image):
            if number == 4 and kind == protobuf.BYTES:
                _image(value.tag, part, event, harvest)
    elif value.histogram is not None:
        _histogram(value.tag, _histogram_of(value.histogram), event, harvest)
    elif value.tensor is not None:
        _tensor(value, event, source, harvest)
    elif value.has_audio:
        harvest.miss("kind_unknown")


def _parts(message: memoryview) -> _Value:
    value = _Value()
    for number, kind, part in protobuf.fields(message):
        if number == 1 and kind == protobuf.BYTES:
            value.tag = protobuf.text(part, 400)
        elif number == 2 and kind == protobuf.FIXED32:
            value.simple = protobuf.single(part)
        elif kind != protobuf.BYTES:
            continue
        elif number == 4:
            value.image = part
        elif number == 5:
            value.histogram = part
        elif number == 6:
            value.has_audio = True
        elif number == 8:
            value.tensor = part
        elif number == 9:
            value.plugin, value.content = _plugin(part)
    return value


def _plugin(metadata: memoryview) -> tuple[str, memoryview]:
    name, content = "", memoryview(b"")
    for number, kind, data in protobuf.fields(metadata):
        if number == 1 and kind == protobuf.BYTES:
            for inner, how, part in protobuf.fields(data):
                if inner == 1 and how == protobuf.BYTES:
                    name = protobuf.text(part, 40)
                elif inner == 2 and how == protobuf.BYTES:
                    content = part
    return name, content


def _tensor(value: _Value, event: _Event, source: Source, harvest: Harvest) -> None:
    """What a tensor means says its plugin where it is given, which only the first of a name has to, else its shape."""
    assert value.tensor is not None
    tensor = tensors.read(value.tensor)
    if tensor is None or value.plugin not in ("", "scalars", "histograms", "text", "images"):
        harvest.miss("kind_unknown")
    elif tensor.texts:
        pictures = [part for part in tensor.texts[:12] if bytes(part[:4]).startswith((_PNG, _JPEG, _GIF))]
        if value.plugin == "images" or (pictures and value.plugin != "text"):
            for number, part in enumerate(pictures):
                _image(f"{value.tag}/{number}" if len(pictures) > 1 else value.tag, part, event, harvest)
        else:
            _text(value.tag, tensor.texts, event, harvest)
    elif len(tensor.shape) == 2 and tensor.shape[1] == 3:
        _histogram(value.tag, histograms.from_triples(tensor.values.reshape(-1, 3)), event, harvest)
    elif len(tensor.values) == 1:
        _point(value.tag, float(tensor.values[0]), event, source, harvest)
    else:
        harvest.miss("kind_unknown")


def _point(tag: str, number: float, event: _Event, source: Source, harvest: Harvest) -> None:
    if math.isfinite(number):
        harvest.point(source, tag, event.step, number, event.at)
    else:
        harvest.miss("not_finite")


def _image(tag: str, data: memoryview, event: _Event, harvest: Harvest) -> None:
    harvest.show(Shown("image", name_of(tag), event.step, event.at, {}, bytes(data)))


def _text(tag: str, parts: list[memoryview], event: _Event, harvest: Harvest) -> None:
    text = "\n".join(protobuf.text(part, MAX_TEXT_BYTES) for part in parts[:100])
    facts = {
        "text": text[:MAX_TEXT_BYTES],
        "cut": len(text) > MAX_TEXT_BYTES or any(len(p) > 4 * MAX_TEXT_BYTES for p in parts),
    }
    harvest.show(Shown("text", name_of(tag.removesuffix("/text_summary")), event.step, event.at, facts))


def _histogram(tag: str, facts: dict[str, Any] | None, event: _Event, harvest: Harvest) -> None:
    if facts is None:
        harvest.miss("not_finite")
    else:
        harvest.show(Shown("histogram", name_of(tag), event.step, event.at, facts))


def _histogram_of(message: memoryview) -> dict[str, Any] | None:
    low = high = 0.0
    limits: list[Any] = []
    counts: list[Any] = []
    for number, kind, part in protobuf.fields(message):
        if number == 1 and kind == protobuf.FIXED64:
            low = protobuf.double(part)
        elif number == 2 and kind == protobuf.FIXED64:
            high = protobuf.double(part)
        elif number in (6, 7) and kind in (protobuf.BYTES, protobuf.FIXED64):
            (limits if number == 6 else counts).append(protobuf.numbers(kind, part, "<f8"))
    if not limits or not counts:
        return None
    return histograms.from_limits(low, high, np.concatenate(limits), np.concatenate(counts))
