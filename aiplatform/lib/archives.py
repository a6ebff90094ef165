"""Unpack untrusted archives: check all entries first, then write under a limit, all or nothing.

The only file that touches zipfile and tarfile. What an archive is, its first bytes say, not its name.
Names that could write elsewhere, links, devices and twins refuse the whole archive; names that are merely
awkward (control characters, `CON`, a trailing dot) are changed and reported.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

from aiplatform.lib.archive_names import decode_all, is_junk, safe_parts
from aiplatform.lib.archive_refusals import ArchiveRefused
from aiplatform.lib.archive_streams import Inflating, TooMuch, opener_for
from aiplatform.lib.wording import Worded, message

CHUNK = 1 << 20
FREE_RATIO = 100 << 20  # this much may come out of any archive, however small
Progress = Callable[[int, int], None]  # files so far, bytes so far


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what may come out of one archive.

    Args:
        max_bytes: total unpacked size.
        max_files: number of entries, folders included; checked before unpacking.
        ratio: unpacked bytes allowed per packed byte, beyond the first 100 MiB.
    """

    max_bytes: int = 1 << 40
    max_files: int = 2_000_000
    ratio: int = 200

    def budget(self, packed_bytes: int) -> int:
        """Bytes that may come out of an archive of `packed_bytes`."""
        return min(self.max_bytes, FREE_RATIO + self.ratio * packed_bytes)


@dataclass(slots=True)
class Report:
    """What was unpacked. `renamed` maps names in the archive to names on disk; `ignored` is system litter."""

    files: int = 0
    size_bytes: int = 0
    renamed: list[tuple[str, str]] = field(default_factory=list)
    ignored: int = 0


@dataclass(slots=True)
class _Entry:
    raw: bytes  # the name as in the archive
    text: str | None  # the name where the archive states its encoding, else None
    is_dir: bool
    size: int
    dos: bool = False  # written by a DOS or Windows tool
    executable: bool = False


class _Reader(Protocol):
    def entries(self) -> Iterator[_Entry]: ...
    def contents(self) -> Iterator[tuple[_Entry, IO[bytes] | None]]: ...


def kind_of(path: Path) -> str | None:
    """ "zip", "tar", "tar.gz", "tar.bz2", "tar.xz" or "tar.zst" by content; None for anything else."""
    with path.open("rb") as file:
        head = file.read(4)
    if head in {b"PK\x03\x04", b"PK\x05\x06"}:
        return "zip"
    packed = opener_for(head)
    try:
        with path.open("rb") as file:
            block = Inflating(file, head, budget=1 << 20).read(512) if packed else file.read(512)
    except (OSError, EOFError, TooMuch):
        return None
    if len(block) < 512 or not _is_tar_header(block):
        return None
    return f"tar.{packed}" if packed else "tar"


def extract(
    archive: Path,
    into: Path,
    *,
    limits: Limits | None = None,
    on_progress: Progress | None = None,
    executables: bool = False,
) -> Report:
    """Unpack `archive` into the new folder `into`.

    Everything is inspected before the first byte is written; on any refusal `into` is removed again.

    Args:
        executables: programs and scripts stay executable; otherwise no file is.

    Raises:
        ArchiveRefused: not an archive, damaged, protected by a password, unsafe or over a limit.
        FileExistsError: `into` is there already.
    """
    limits = limits or Limits()
    kind = kind_of(archive)
    if kind is None:
        raise ArchiveRefused(message("archive.none"))
    into.mkdir(parents=True)
    try:
        return _extract(archive, kind, into, limits, on_progress, executables)
    except ArchiveRefused:
        shutil.rmtree(into, ignore_errors=True)
        raise
    except TooMuch as exc:
        shutil.rmtree(into, ignore_errors=True)
        raise ArchiveRefused(message("archive.too_large", limit=exc.budget), limit=exc.budget) from None
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, ValueError, NotImplementedError, OSError) as exc:
        shutil.rmtree(into, ignore_errors=True)
        if isinstance(exc, OSError) and exc.errno is not None:
            raise  # disk full, no permission: ours, not the archive's
        raise ArchiveRefused(message("archive.damaged", error=str(exc))) from exc


def _extract(
    archive: Path, kind: str, into: Path, limits: Limits, on_progress: Progress | None, executables: bool
) -> Report:
    budget = limits.budget(archive.stat().st_size)
    reader: _Reader = _Zip(archive, limits) if kind == "zip" else _Tar(archive, limits, budget)
    report = Report()
    plan = _plan(reader.entries(), limits, budget, report)
    made: set[tuple[str, ...]] = set()
    for (entry, source), parts in zip(reader.contents(), plan, strict=True):
        if parts is None:
            continue
        folder = parts if entry.is_dir else parts[:-1]
        if folder not in made:
            into.joinpath(*folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        if source is None:
            continue
        mode = 0o755 if executables and entry.executable else 0o644
        report.size_bytes += _write(source, into.joinpath(*parts), budget - report.size_bytes, budget, mode)
        report.files += 1
        if on_progress and report.files % 256 == 0:
            on_progress(report.files, report.size_bytes)
    if on_progress:
        on_progress(report.files, report.size_bytes)
    return report


def _plan(entries: Iterable[_Entry], limits: Limits, budget: int, report: Report) -> list[tuple[str, ...] | None]:
    """Return where each entry goes (None: left out); refuse dangerous ones."""
    listed: list[_Entry] = []
    total = 0
    for entry in entries:
        listed.append(entry)
        if len(listed) > limits.max_files:
            raise ArchiveRefused(message("archive.too_many", limit=limits.max_files), limit=limits.max_files)
        total += max(entry.size, 0)
        if total > budget:
            raise ArchiveRefused(message("archive.too_large", limit=budget), limit=budget)
    names = decode_all([(entry.raw, entry.text, entry.dos) for entry in listed])
    places: list[tuple[str, ...] | None] = []
    files: dict[str, str] = {}
    folders: set[str] = set()
    for entry, name in zip(listed, names, strict=True):
        try:
            parts = safe_parts(name)
        except Worded as exc:
            raise ArchiveRefused(
                message("archive.unsafe_name", name=_shown(name), why=exc.worded), name=ascii(name)
            ) from None
        if not parts or is_junk(parts):
            report.ignored += bool(parts)
            places.append(None)
            continue
        keys = [unicodedata.normalize("NFC", "/".join(parts[:n])).casefold() for n in range(1, len(parts) + 1)]
        above = keys if entry.is_dir else keys[:-1]
        clash = next((files[key] for key in above if key in files), None)
        if clash is None and not entry.is_dir:
            clash = files.get(keys[-1]) or (name if keys[-1] in folders else None)
        if clash is not None:
            raise ArchiveRefused(message("archive.twins", one=_shown(clash), other=_shown(name)), name=ascii(name))
        folders.update(above)
        if not entry.is_dir:
            files[keys[-1]] = name
        if "/".join(parts) != name.rstrip("/").removeprefix("./"):
            report.renamed.append((name, "/".join(parts)))
        places.append(parts)
    return places


def _special(name: str) -> ArchiveRefused:
    return ArchiveRefused(message("archive.special_file", name=_shown(name)), name=ascii(name))


def _shown(name: str) -> str:
    """A name for a sentence, with what is not printable made visible."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _write(source: IO[bytes], target: Path, left: int, budget: int, mode: int) -> int:
    """Copy `source` to the new file `target`; raise beyond `left` bytes."""
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    written = 0
    with os.fdopen(fd, "wb", buffering=0) as out:
        while block := source.read(CHUNK):
            written += len(block)
            if written > left:
                raise TooMuch(budget)
            out.write(block)
    return written


class _Zip:
    """A zip file. Overlapping entries are refused: several names over one stream is how small bombs get big."""

    def __init__(self, path: Path, limits: Limits) -> None:
        claimed = _zip_entry_count(path)
        if claimed > limits.max_files:  # before the list of names is even read
            raise ArchiveRefused(
                message("archive.claims_too_many", count=claimed, limit=limits.max_files), limit=limits.max_files
            )
        self.file = zipfile.ZipFile(path)
        self.infos = self.file.infolist()

    def entries(self) -> Iterator[_Entry]:
        end = 0
        for info in sorted(self.infos, key=lambda info: info.header_offset):
            if info.header_offset < end:
                raise ArchiveRefused(message("archive.overlap"))
            end = info.header_offset + 30 + info.compress_size
        if end > self.file.start_dir:
            raise ArchiveRefused(message("archive.overlaps_its_table"))
        for info in self.infos:
            if info.flag_bits & 0x1:
                raise ArchiveRefused(message("archive.password"))
            mode = info.external_attr >> 16
            kind = stat.S_IFMT(mode)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR} or mode & (stat.S_ISUID | stat.S_ISGID):
                raise _special(info.orig_filename)
            utf8 = bool(info.flag_bits & 0x800)
            raw = info.orig_filename.encode("utf-8" if utf8 else "cp437", "surrogateescape")
            yield _Entry(
                raw, info.orig_filename if utf8 else None, info.is_dir(), info.file_size, info.create_system != 3
            )

    def contents(self) -> Iterator[tuple[_Entry, IO[bytes] | None]]:
        with self.file:
            for info in self.infos:
                executable = bool(info.external_attr >> 16 & stat.S_IXUSR)
                entry = _Entry(b"", None, info.is_dir(), info.file_size, executable=executable)
                if entry.is_dir:
                    yield entry, None
                    continue
                with self.file.open(info) as source:
                    yield entry, source


def _zip_entry_count(path: Path) -> int:
    """Entries the zip's end record claims (zip64 too), read without listing them; 0 where there is none."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 65_557 - 76))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 12:
        return 0
    count = int.from_bytes(tail[at + 10 : at + 12], "little")
    at64 = tail.rfind(b"PK\x06\x06", 0, at)
    if count == 0xFFFF and at64 >= 0:
        count = int.from_bytes(tail[at64 + 32 : at64 + 40], "little")
    return count


class _Tar:
    """A tar file, packed or not, read forwards twice: once to look, once to write."""

    def __init__(self, path: Path, limits: Limits, budget: int) -> None:
        self.path, self.limits = path, limits
        # Headers count too: a megabyte of nothing but headers must not run for hours.
        self.stream_budget = budget + 4096 * limits.max_files

    def _members(self) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
        with self.path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            stream = Inflating(file, head, budget=self.stream_budget)
            with tarfile.open(
                fileobj=cast(IO[bytes], stream), mode="r:", encoding="utf-8", errors="surrogateescape"
            ) as tar:
                while (member := tar.next()) is not None:
                    tar.members.clear()  # type: ignore[attr-defined]  # the list would keep every header in memory
                    yield tar, member

    def entries(self) -> Iterator[_Entry]:
        for _tar, member in self._members():
            if not (member.isreg() or member.isdir()) or member.issparse() or member.size < 0:
                raise _special(member.name)
            if member.isreg() and member.mode & (stat.S_ISUID | stat.S_ISGID):
                raise _special(member.name)
            raw = member.name.encode("utf-8", "surrogateescape")
            text = member.name if "path" in member.pax_headers else None
            yield _Entry(raw, text, member.isdir(), member.size if member.isreg() else 0)

    def contents(self) -> Iterator[tuple[_Entry, IO[bytes] | None]]:
        for tar, member in self._members():
            entry = _Entry(b"", None, member.isdir(), member.size, executable=bool(member.mode & stat.S_IXUSR))
            yield entry, None if entry.is_dir else tar.extractfile(member)


def _is_tar_header(block: bytes) -> bool:
    if block == bytes(512):
        return True  # an empty tar is nothing but zero blocks
    try:
        stored = int(block[148:156].strip(b"\0 ") or b"-1", 8)
    except ValueError:
        return False
    return stored == sum(block[:148]) + 32 * 8 + sum(block[156:512])


def tar_header(name: str, size_bytes: int, modified: float) -> bytes:
    """The header of a regular file in a tar (pax where the name needs it); its data, padded to 512, follows."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size_bytes, int(modified)
    return info.tobuf(tarfile.PAX_FORMAT)


def small_zip(entries: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip of a few small files that any reader takes, Python's own of modules too; the same bytes each time."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()
