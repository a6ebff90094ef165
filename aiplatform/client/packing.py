"""Files and folders as one tar that is never written: it is read, piece by piece, while it is sent."""

from __future__ import annotations

import bisect
import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiplatform.client.errors import NOT_FOUND, ClientError

_BLOCK = 512


@dataclass(frozen=True)
class _Part:
    begin: int
    size: int
    content: bytes | Path


class Sent:
    """Bytes an upload sends: a file as it is.

    Args:
        key: the same for the same bytes, so that a broken upload goes on.
    """

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise ClientError(f"{file} is not a file.", NOT_FOUND)
        info = file.stat()
        self.name, self.size = file.name, info.st_size
        self.key = f"{file.resolve()}|{info.st_size}|{info.st_mtime_ns}"
        self._parts = [_Part(0, info.st_size, file)]

    def read(self, offset: int, count: int) -> bytes:
        """Bytes `offset` to `offset + count`, fewer at the end.

        Raises:
            ClientError: a file became shorter since, or is gone.
        """
        out = bytearray()
        at = bisect.bisect_right([part.begin for part in self._parts], offset) - 1
        for part in self._parts[max(at, 0) :]:
            left = count - len(out)
            if left <= 0:
                break
            begin = offset + len(out) - part.begin
            out += _bytes_of(part, begin, min(left, part.size - begin))
        return bytes(out)


def _bytes_of(part: _Part, begin: int, count: int) -> bytes:
    if isinstance(part.content, bytes):
        return part.content[begin : begin + count]
    try:
        with part.content.open("rb") as file:
            file.seek(begin)
            data = file.read(count)
    except OSError as exc:
        raise ClientError(f"{part.content} cannot be read: {exc.strerror}.") from exc
    if len(data) < count:
        raise ClientError(f"{part.content} changed during the upload. Send it again.")
    return data


def _header(name: str, info: os.stat_result) -> bytes:
    """The header of one file, executable where it is here.

    Before it, where name or size do not fit, a pax header that says them in full.
    """
    raw, size, modified = name.encode("utf-8", "surrogateescape"), info.st_size, info.st_mtime
    mode = 0o755 if info.st_mode & stat.S_IXUSR else 0o644
    if len(raw) <= 100 and raw.isascii() and size < 8**11:
        return _block(raw, size, modified, b"0", mode)
    records = _record(b"path=" + raw + b"\n") + _record(b"size=%d\n" % size)
    padded = records + bytes(-len(records) % _BLOCK)
    long = _block(b"long", min(size, 8**11 - 1), modified, b"0", mode)
    return _block(b"pax", len(records), modified, b"x") + padded + long


def _record(text: bytes) -> bytes:
    """One line of a pax header: its own length in bytes, a space, the text."""
    length = len(text) + 3
    while len(str(length)) + 1 + len(text) != length:
        length = len(str(length)) + 1 + len(text)
    return b"%d %s" % (length, text)


def _block(name: bytes, size: int, modified: float, kind: bytes, mode: int = 0o644) -> bytes:
    numbers = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (mode, 0, 0, size, max(0, int(modified)))
    block = name.ljust(100, b"\0") + numbers + b" " * 8 + kind + bytes(100) + b"ustar\x0000"
    block = block.ljust(_BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


class Packed(Sent):
    """Several files as a tar.

    Args:
        files: name in the tar and file.
        name: what the tar is called.
    """

    def __init__(self, files: Iterable[tuple[str, Path]], name: str) -> None:
        files = sorted(files)
        if not files:
            raise ClientError("No files found.", NOT_FOUND)
        digest = hashlib.sha256()
        parts, at = [], 0
        for inside, file in files:
            info = file.stat()
            facts = f"{inside}|{file.resolve()}|{info.st_size}|{info.st_mtime_ns}|{info.st_mode}\n"
            digest.update(facts.encode(errors="replace"))
            padding = bytes(-info.st_size % _BLOCK)
            for content, size in (
                (_header(inside, info), -1),
                (file, info.st_size),
                (padding, -1),
            ):
                length = len(content) if isinstance(content, bytes) else size
                if length:
                    parts.append(_Part(at, length, content))
                    at += length
        parts.append(_Part(at, 2 * _BLOCK, bytes(2 * _BLOCK)))
        self._parts = parts
        self.size = at + 2 * _BLOCK
        self.name = name
        self.key = f"tar|{digest.hexdigest()}"


def packed(paths: Sequence[Path]) -> Packed:
    """Files, and folders walked through, as a tar. Links are left out.

    Raises:
        ClientError: one of them is not there, or two would have one name.
    """
    more = f" +{len(paths) - 1}" if len(paths) > 1 else ""
    return Packed(_walk(paths), f"{paths[0].resolve().name}{more}.tar")


def _walk(paths: Iterable[Path]) -> list[tuple[str, Path]]:
    """Name in the tar and file; names begin with what was given."""
    files: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise ClientError(f"{path} not found.", NOT_FOUND)
        top = path.resolve().name
        if path.is_file():
            _add(files, top, path)
        for folder, _folders, names in os.walk(path):
            for name in names:
                file = Path(folder, name)
                if not file.is_symlink() and file.is_file():
                    _add(files, f"{top}/{file.relative_to(path).as_posix()}", file)
    return list(files.items())


def _add(files: dict[str, Path], name: str, file: Path) -> None:
    if name in files:
        raise ClientError(f"{file} and {files[name]} would have the same name. Specify the folder above them.")
    files[name] = file
