"""Unpack a saved layer, trusting nothing in it: whole and as it was noted, or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import zstandard

from aiplatform.lib import files, wording
from aiplatform.lib.errors import DomainError
from workers.images.store.archive import MAX_DEPTH, OPAQUE, WHITEOUT

WINDOW = 1 << 27  # most memory that a frame may ask for
_MODES = 0o777
_BLOCK = 1 << 20


class BadLayer(DomainError, code="bad_layer"):
    """A packed layer that is not what it should be; nothing of it is kept."""


def unpack(
    packed: Path, layer: Path, *, sha256: str, most_bytes: int, most_files: int,
    alive: Callable[[], object] = lambda: None,
) -> None:  # fmt: skip
    """Make the folder `layer` of a packed one; where it is there already, nothing happens.

    Args:
        most_bytes, most_files: what was noted when it was packed; more than that is refused.
        alive: called with each piece that is unpacked; what it raises ends the work.

    Raises:
        BadLayer: another checksum, damaged, or anything that no layer of ours holds.
        OSError: it cannot be read or written.
    """
    if layer.is_dir():
        return
    layer.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=layer.parent))
    try:
        with packed.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise BadLayer(wording.message("image.layer_checksum"))
            file.seek(0)
            reader = _Unpacker(part, most_bytes, most_files)
            _read(file, reader, alive)
        reader.set_modes()
        part.chmod(0o755)
        files.flush_filesystem(part)
        part.rename(layer)
    except OSError:
        if not layer.is_dir():  # somebody else was faster
            raise
    finally:
        files.remove_tree(part)


def _read(file: IO[bytes], reader: _Unpacker, alive: Callable[[], object]) -> None:
    try:
        raw = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(file)
        stream: Any = _Bounded(raw, reader, alive)
        with raw, tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                reader.add(archive, entry)
    except (tarfile.TarError, zstandard.ZstdError, EOFError, UnicodeError) as exc:
        raise BadLayer(wording.message("image.layer_torn", error=str(exc))) from None


class _Bounded:
    """What comes out of the decompressor, and no more than the noted size allows, names and padding included."""

    def __init__(self, raw: object, reader: _Unpacker, alive: Callable[[], object]) -> None:
        self.raw, self.alive, self.left = raw, alive, reader.most_bytes + (reader.most_files + 64) * 8192

    def read(self, size: int) -> bytes:
        self.alive()
        data: bytes = self.raw.read(size)  # type: ignore[attr-defined]  # of the decompressor
        self.left -= len(data)
        if self.left < 0:
            raise BadLayer(wording.message("image.layer_bomb"))
        return data


class _Unpacker:
    """Unpacks entries below a folder that no other process writes to."""

    def __init__(self, top: Path, most_bytes: int, most_files: int) -> None:
        self.top, self.most_bytes, self.most_files = top, most_bytes, most_files
        self.modes: list[tuple[Path, int]] = []
        self.bytes = self.files = 0

    def add(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        """Put one entry in its place.

        Raises:
            BadLayer: it is none that a layer holds.
        """
        folder, name = self._place(entry)
        if entry.mode & ~_MODES:
            self._refuse("image.layer_setuid", entry)
        self.bytes += entry.size
        if self.bytes > self.most_bytes:
            self._refuse("image.layer_bomb", entry)
        if name == OPAQUE:
            os.setxattr(folder, "user.overlay.opaque", b"y")
            return
        self.files += 1
        if self.files > self.most_files:
            self._refuse("image.layer_bomb", entry)
        if name.startswith(WHITEOUT):
            self._whiteout(folder, name, entry)
        else:
            self._make(archive, entry, folder / name)

    def set_modes(self) -> None:
        """Close folders as they were, the inner ones first."""
        for path, mode in reversed(self.modes):
            path.chmod(mode)

    def _place(self, entry: tarfile.TarInfo) -> tuple[Path, str]:
        """The folder of an entry, which must be there and no link, and its name."""
        parts = entry.name.split("/")
        if entry.name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts) or len(parts) > MAX_DEPTH + 2:
            self._refuse("image.layer_name", entry)
        folder = self.top
        for part in parts[:-1]:  # nobody else writes here meanwhile, so looking before entering is enough
            folder = folder / part
            if not _is_folder(folder):
                self._refuse("image.layer_link", entry)
        return folder, parts[-1]

    def _whiteout(self, folder: Path, name: str, entry: tarfile.TarInfo) -> None:
        hidden = name[len(WHITEOUT) :]
        if not entry.isreg() or entry.size or hidden.startswith(WHITEOUT) or hidden in ("", ".", ".."):
            self._refuse("image.layer_name", entry)
        self._new(folder / hidden, entry)
        os.mknod(folder / hidden, stat.S_IFCHR, 0)  # everybody may

    def _make(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
        self._new(path, entry)
        if entry.isdir():
            path.mkdir(mode=0o700)
            self.modes.append((path, entry.mode))
        elif entry.issym():
            path.symlink_to(entry.linkname)  # never followed here; in a job it leads where the job sees it
        elif entry.islnk():
            os.link(self._link_target(entry), path, follow_symlinks=False)
        elif entry.isreg():
            source = archive.extractfile(entry)
            with path.open("xb") as file:
                if source is not None:
                    shutil.copyfileobj(source, file, _BLOCK)
                os.fchmod(file.fileno(), entry.mode)
            os.utime(path, (entry.mtime, entry.mtime))
        else:
            self._refuse("image.layer_special", entry)

    def _link_target(self, entry: tarfile.TarInfo) -> Path:
        """The file that a hard link names: one of this layer, on a path without links."""
        named = tarfile.TarInfo(entry.linkname)
        if {"", ".", ".."} & set(entry.linkname.split("/")):
            self._refuse("image.layer_link", entry)
        folder, name = self._place(named)
        if not (folder / name).is_file() or (folder / name).is_symlink():
            self._refuse("image.layer_link", entry)
        return folder / name

    def _new(self, path: Path, entry: tarfile.TarInfo) -> None:
        if os.path.lexists(path):
            self._refuse("image.layer_name", entry)

    def _refuse(self, code: str, entry: tarfile.TarInfo) -> None:
        facts = {} if code == "image.layer_bomb" else {"path": entry.name[:200]}
        raise BadLayer(wording.message(code, **facts))


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
