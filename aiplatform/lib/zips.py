"""Send files as one zip that is made while it is sent, and the same each time, so that it can be resumed.

Nothing is packed: sizes are known beforehand, so the length is, and a part of the zip can be asked for. What lies
before that part is read for its checksums, not sent. No temporary file.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from aiplatform.lib import times
from aiplatform.lib.downloads import BLOCK, send_parts
from aiplatform.lib.files import OutsideRoot, open_beneath

EPOCH = 315_532_800  # 1980, the first moment a zip can name

#: A file (name inside, root, path below it), or bytes (name inside, bytes).
Entry = tuple[str, Path, str] | tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class _File:
    name: bytes
    size: int
    modified: float
    root: Path | None
    path: str
    data: bytes

    def blocks(self) -> Generator[bytes]:
        """Its bytes, as many as were promised.

        Raises:
            OSError: it is gone or shorter by now; the connection breaks and the reader asks again.
        """
        if self.root is None:
            yield self.data
            return
        left = self.size
        with os.fdopen(open_beneath(self.root, self.path), "rb") as source:
            while left > 0:
                block = source.read(min(BLOCK, left))
                if not block:
                    raise OSError(f"{self.path} is shorter than it was")
                left -= len(block)
                yield block


def send_zip(request: HttpRequest, entries: Iterable[Entry], name: str) -> HttpResponseBase:
    """Send a zip of `entries`, or the part of it that `Range` requests.

    No link below a root is followed, not even one that took a folder's place meanwhile; what is not there is left out.
    """
    files = [file for entry in entries if (file := _planned(entry)) is not None]
    digest = hashlib.sha256()
    for file in files:
        digest.update(b"%b\0%d\0%r\0" % (file.name, file.size, file.modified))
        digest.update(hashlib.sha256(file.data).digest() if file.root is None else b"")
    etag = f'"{digest.hexdigest()[:32]}"'
    return send_parts(
        request, name, "application/zip", etag, _length(files), lambda begin, end: _cut(_zip(files), begin, end)
    )


def blocks(entries: Iterable[Entry]) -> Generator[bytes]:
    """The bytes of a zip of `entries`; what is not there is left out."""
    return _zip([file for entry in entries if (file := _planned(entry)) is not None])


def size(entries: Iterable[Entry]) -> int:
    """Bytes that `blocks` gives of the same entries."""
    return _length([file for entry in entries if (file := _planned(entry)) is not None])


def _planned(entry: Entry) -> _File | None:
    if len(entry) == 2:
        inside, data = entry
        return _File(inside.encode(), len(data), EPOCH, None, "", data)
    inside, root, path = entry
    try:
        descriptor = open_beneath(root, path)
    except (OSError, OutsideRoot):
        return None
    try:
        info = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return _File(inside.encode(), info.st_size, info.st_mtime, root, path, b"")


def _length(files: list[_File]) -> int:
    """Bytes of the whole zip."""
    return sum(50 + 24 + 46 + 28 + 2 * len(file.name) + file.size for file in files) + 56 + 20 + 22


def _cut(blocks: Generator[bytes], begin: int, end: int) -> Generator[bytes]:
    at = 0
    try:
        for block in blocks:
            if at + len(block) > begin:
                yield block[max(begin - at, 0) : end - at]
            at += len(block)
            if at >= end:
                return
    finally:
        blocks.close()


def _zip(files: list[_File]) -> Generator[bytes]:
    """The bytes of a zip (stored, zip64), each file read once."""
    at = 0
    entries: list[bytes] = []
    for file in files:
        stamp, begin = _dos_time(file.modified), at
        # bit 3: sizes follow the data; bit 11: the name is UTF-8
        head = struct.pack(
            "<IHHHIIIIHH", 0x04034B50, 45, 0x808, 0, stamp, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(file.name), 20
        )
        head += file.name + struct.pack("<HHQQ", 1, 16, 0, 0)
        yield head
        crc = 0
        for block in file.blocks():
            crc = zlib.crc32(block, crc)
            yield block
        tail = struct.pack("<IIQQ", 0x08074B50, crc, file.size, file.size)
        yield tail
        at += len(head) + file.size + len(tail)
        extra = struct.pack("<HHQQQ", 1, 24, file.size, file.size, begin)
        entries.append(
            struct.pack(
                "<IHHHHIIIIHHHHHII",
                *(0x02014B50, 45 | 3 << 8, 45, 0x808, 0, stamp, crc, 0xFFFFFFFF, 0xFFFFFFFF),
                *(len(file.name), len(extra), 0, 0, 0, 0o100644 << 16, 0xFFFFFFFF),
            )
            + file.name
            + extra
        )
    listing = b"".join(entries)
    count, size = len(entries), len(listing)
    yield listing
    yield struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, at)
    yield struct.pack("<IIQI", 0x07064B50, 0, at + size, 1)
    few = min(count, 0xFFFF)
    yield struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, few, few, min(size, 0xFFFFFFFF), min(at, 0xFFFFFFFF), 0)


def _dos_time(moment: float) -> int:
    """Date and time as a zip writes them: two-second steps since 1980, in one 32-bit number."""
    when = times.moment(moment)
    year = min(max(when.year - 1980, 0), 127)
    return (
        (year << 25)
        | (when.month << 21)
        | (when.day << 16)
        | (when.hour << 11)
        | (when.minute << 5)
        | (when.second // 2)
    )
