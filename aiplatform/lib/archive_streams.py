"""Decompress streams with a limit on output bytes and memory."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import IO, Any

import zstandard

_READ = 1 << 18
_MAX_READ_BYTES = 8 << 20  # tar headers are small; a header of a gigabyte is an attack on memory
_LZMA_MEMORY = 512 << 20


class TooMuch(Exception):
    """More bytes came out than the limit allows."""

    def __init__(self, budget: int) -> None:
        super().__init__(f"more than {budget} bytes")
        self.budget = budget


def opener_for(head: bytes) -> str | None:
    """ "gz", "bz2", "xz" or "zst" by the first four bytes; None where nothing is compressed."""
    if head[:2] == b"\x1f\x8b":
        return "gz"
    if head[:3] == b"BZh":
        return "bz2"
    if head == b"\xfd7zX":
        return "xz"
    if head == b"\x28\xb5\x2f\xfd":
        return "zst"
    return None


def _decompressor(kind: str) -> Any:
    if kind == "gz":
        return zlib.decompressobj(wbits=31)
    if kind == "bz2":
        return bz2.BZ2Decompressor()
    if kind == "xz":
        return lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)
    raise ValueError(f"no decompressor for {kind}")


def _zstd_reader(file: IO[bytes]) -> IO[bytes]:
    # A reader, because it can be asked for so many bytes: one block of 4 bytes may stand for 128 KiB.
    return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)


class Inflating:
    """A readable, forward-seekable view of a compressed (or plain) file.

    Args:
        head: its first four bytes; they decide the decompressor.
        budget: bytes that may come out in total; beyond it `TooMuch` is raised.

    Several members one after the other (pigz, `cat a.gz b.gz`) are read as one.
    """

    def __init__(self, file: IO[bytes], head: bytes, *, budget: int) -> None:
        file.seek(0)
        self.file, self.budget = file, budget
        self.kind = opener_for(head)
        self.zstd = _zstd_reader(file) if self.kind == "zst" else None
        self.engine: Any = _decompressor(self.kind) if self.kind and not self.zstd else None
        self.waiting = bytearray()
        self.position = 0
        self.ended = False

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        if size < 0 or size > _MAX_READ_BYTES:
            raise ValueError("a header asks for more than any real one needs")
        if self.zstd is not None:
            got = self._read_zstd(size)
        elif self.engine is None:
            got = self.file.read(size)
        else:
            while len(self.waiting) < size and not self.ended:
                self._inflate(size)
            got = bytes(self.waiting[:size])
            del self.waiting[:size]
        self.position += len(got)
        if self.position > self.budget:
            raise TooMuch(self.budget)
        return got

    def _inflate(self, wanted: int) -> None:
        engine = self.engine
        if engine.eof:
            rest = engine.unused_data or self.file.read(_READ)
            if not rest.strip(b"\0"):
                self.ended = True
                return
            self.engine = engine = _decompressor(str(self.kind))
            self.waiting += self._feed(engine, rest, wanted)
            return
        pending = engine.unconsumed_tail if self.kind == "gz" else b""
        if not pending and (self.kind == "gz" or engine.needs_input):
            pending = self.file.read(_READ)
            if not pending:
                raise EOFError("it ends in the middle")
        self.waiting += self._feed(engine, pending, wanted)

    def _feed(self, engine: Any, data: bytes, wanted: int) -> bytes:
        room = max(_READ, wanted - len(self.waiting))
        try:
            return engine.decompress(data, room)
        except (zlib.error, lzma.LZMAError, OSError) as exc:
            raise ValueError(str(exc)) from exc

    def _read_zstd(self, size: int) -> bytes:
        assert self.zstd is not None
        parts = []
        while size > 0:
            try:
                got = self.zstd.read(size)
            except zstandard.ZstdError as exc:
                raise ValueError(str(exc)) from exc
            if not got:
                break
            parts.append(got)
            size -= len(got)
        return b"".join(parts)

    def seek(self, position: int, whence: int = 0) -> int:
        """Move forwards to the absolute `position`."""
        if whence != 0 or position < self.position:
            raise ValueError("this stream only goes forwards")
        if self.engine is None and self.zstd is None:
            self.file.seek(position)
            self.position = position
            return position
        while self.position < position:
            if not self.read(min(_READ, position - self.position)):
                break
        return self.position

    def tell(self) -> int:
        """Return the number of bytes read so far."""
        return self.position
