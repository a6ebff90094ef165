"""TensorBoard's event files: what a training reports, for whoever opens its outputs with TensorBoard.

The format is TensorFlow's: TFRecords (length, masked CRC-32C of it, data, masked CRC-32C of them) of `Event` messages
(tensorflow/core/util/event.proto: wall_time 1, step 2, file_version 3, summary 5, session_log 7) with `Summary.Value`
(summary.proto: tag 1, simple_value 2). A few lines write it; the package that does otherwise is no part of every
installation. The platform itself reads metrics.jsonl and passes these files over, by the end of their names.
"""

from __future__ import annotations

import math
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from .run import Run, log_line

FOLDER, MARK = "tensorboard", ".aip"  # below the outputs; how the names of our own files end
VERSION = b"brain.Event:2"
START = 1  # SessionLog: what later steps an earlier file has is no longer true
POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected
MASK = 0xA282EAD8


def with_events(run: Run) -> Run:
    """Let a run write what it reports into an event file too; a view of a training writes none."""
    if run.metrics_file is not None and not run.show:
        run.recorder = Events(run.output_dir / FOLDER).add
    return run


class Events:
    """One file of one process, begun with the first figure. Nothing that goes wrong here ends a training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: int | None = None
        self._failed = False

    def add(self, step: int, figures: Mapping[str, float | str]) -> None:
        """Write the figures that are numbers of a part of the data, such as "val/loss"; others say how far it is."""
        numbers = {key: float(value) for key, value in figures.items() if "/" in key and not isinstance(value, str)}
        if not numbers or self._failed:
            return
        try:
            if self._file is None:
                self._file = self._begun(step)
            os.write(self._file, _record(_event(step, _field(5, b"".join(map(_value, numbers, numbers.values()))))))
        except OSError as error:
            self._failed = True
            log_line(f"No more is written for TensorBoard: {error.strerror}. The curves of the platform go on.")

    def _begun(self, step: int) -> int:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.{os.getpid()}.0{MARK}"
        file = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.write(file, _record(_event(0, _field(3, VERSION))) + _record(_event(step, _field(7, _number(1, START)))))
        return file


def _event(step: int, content: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time.time()) + _number(2, step) + content


def _value(tag: str, value: float) -> bytes:
    largest = 3.4028234663852886e38  # of 32 bits
    single = value if math.isnan(value) or abs(value) <= largest else math.copysign(math.inf, value)
    return _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", single))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _masked(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def _table() -> tuple[int, ...]:
    rows = []
    for row in range(256):
        for _bit in range(8):
            row = row >> 1 ^ (POLYNOMIAL if row & 1 else 0)
        rows.append(row)
    return tuple(rows)


TABLE = _table()
