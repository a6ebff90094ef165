"""Pack the upper layer of a box, so that it can be laid over the same engine anywhere.

What was deleted travels as OCI names (".wh.NAME", ".wh..wh..opq"), whoever mounted the layers. Folders are held open
and no link is followed: what lies in a box was put there by the programs of a job.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import zstandard

from aiplatform.lib import file_names, files

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
MARKS = ("user.overlay.opaque", "trusted.overlay.opaque")
LEVEL = 3
MAX_DEPTH = 100
#: Never part of an image, wherever it lies: secrets of who saves it, histories, caches, repositories with passwords in
#: their addresses. Shown on the page of saving.
LEFT_OUT = (
    ".ssh", ".gnupg", ".netrc", "_netrc", ".pypirc", "pip.conf", "pip.ini", ".pip", "uv.toml", ".condarc",
    ".git", ".git-credentials", ".gitconfig", ".aws", ".azure", ".kube", ".docker", ".config", ".huggingface",
    ".kaggle", ".wandb", ".env", ".jupyter", ".ipython", "jupyter_cookie_secret", ".cache", ".vscode-server",
    ".cursor-server",
    ".*_history", ".lesshst", ".viminfo", "id_rsa*", "id_ed25519*", "id_ecdsa*", "*.token",
    "credentials.json", "application_default_credentials.json", ".pgpass", ".my.cnf", ".boto", ".s3cfg", ".npmrc",
    ".databrickscfg", ".oci", "rclone.conf", "id_dsa*", ".env.*",
)  # fmt: skip
#: Never part of an image at its top: what is made afresh at each start, and homes.
LEFT_OUT_ON_TOP = ("tmp", "run", "proc", "sys", "dev", "home", "root")
MAX_NAMED = 200


class Unpackable(ValueError):
    """A box that cannot be packed; its text is for logs and rows."""


@dataclass
class Figures:
    """What a layer holds."""

    files: int = 0
    bytes: int = 0
    whiteouts: int = 0
    opaque: int = 0
    packed: int = 0
    sha256: str = ""
    left_out: list[str] = field(default_factory=list)


def is_left_out(path: str) -> bool:
    """Whether something at `path` in a layer is never saved."""
    name = path.rpartition("/")[2]
    return path in LEFT_OUT_ON_TOP or any(fnmatch.fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def measure(upper: Path) -> Figures:
    """What saving this layer would take, without reading a file."""
    figures = Figures()
    for entry in _walk(upper, figures):
        figures.bytes += entry.info.st_size if stat.S_ISREG(entry.info.st_mode) and entry.first is None else 0
        figures.files += 1
    return figures


def pack(upper: Path, target: Path, *, alive: Callable[[], object] = lambda: None) -> Figures:
    """Write the layer `upper` to `target`, whole or not at all.

    Args:
        alive: called with each piece that is read; what it raises ends the work.

    Raises:
        OSError: it cannot be written or read.
        Unpackable: a name that only whiteouts may have, or folders deeper than anybody's.
    """
    figures = Figures()
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            out = _Hashing(file)
            compressor = zstandard.ZstdCompressor(level=LEVEL)
            packed = compressor.stream_writer(out, closefd=False)  # type: ignore[arg-type]  # it only writes
            with packed, tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive:
                for entry in _walk(upper, figures):
                    alive()
                    _add(archive, entry, figures, alive)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).rename(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    files.flush_folder(target.parent)
    figures.packed, figures.sha256 = out.size, out.sha.hexdigest()
    return figures


class _Hashing:
    """Counts and hashes what goes through to a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.sha, self.size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.sha.update(data)
        self.size += len(data)
        return self.file.write(data)


class _Heard:
    """Gives a sign of life with each piece of a file that is read."""

    def __init__(self, file: IO[bytes], alive: Callable[[], object]) -> None:
        self.file, self.alive = file, alive

    def read(self, size: int) -> bytes:
        self.alive()
        return self.file.read(size)


@dataclass
class _Entry:
    """A member of a layer: its name, its type, and the open folder that contains it."""

    path: str
    name: str
    folder: int
    info: os.stat_result
    opaque: bool = False
    first: str | None = None  # of a hard link: the name it was met by before


def _walk(top: Path, figures: Figures) -> Iterator[_Entry]:
    """Yield everything that is saved, a folder before its content; what is left out is noted in `figures`."""
    opened = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield from _below(opened, "", figures, {})
    finally:
        os.close(opened)


def _below(folder: int, under: str, figures: Figures, first_paths: dict[tuple[int, int], str]) -> Iterator[_Entry]:
    if under.count("/") > MAX_DEPTH:
        raise Unpackable(f"{_shown(under[:200])}: too deep")
    for name in sorted(os.listdir(folder)):
        path = f"{under}/{name}" if under else name
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if name.startswith(WHITEOUT):
            raise Unpackable(f"{_shown(path[:200])}: such names are whiteouts")
        if not _is_whiteout(info) and is_left_out(path):
            if len(figures.left_out) < MAX_NAMED:
                figures.left_out.append(_shown(path))
        elif stat.S_ISDIR(info.st_mode):
            with _readable(folder, name, info, 0o500):
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                yield _Entry(path, name, folder, info, opaque=any(_mark(inner, mark) for mark in MARKS))
                yield from _below(inner, path, figures, first_paths)
            finally:
                os.close(inner)
        elif stat.S_ISREG(info.st_mode):
            first = first_paths.setdefault((info.st_dev, info.st_ino), path)
            yield _Entry(path, name, folder, info, first=first if first != path else None)
        elif stat.S_ISLNK(info.st_mode) or _is_whiteout(info):
            yield _Entry(path, name, folder, info)
        # sockets, pipes and devices are no part of an image


def _shown(path: str) -> str:
    """A path as text that can be stored and sent, whatever bytes its names are made of."""
    return file_names.shown_path(tuple(os.fsencode(path).split(b"/")))


def _is_whiteout(info: os.stat_result) -> bool:
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def _mark(folder: int, name: str) -> bool:
    try:
        return os.getxattr(folder, name) == b"y"
    except OSError:
        return False


@contextmanager
def _readable(folder: int, name: str, info: os.stat_result, bits: int) -> Iterator[None]:
    """Give the platform temporary read access to files that its own user closed for itself; root can read anyway."""
    closed = os.geteuid() != 0 and info.st_mode & bits != bits and info.st_uid == os.geteuid()
    if not closed:
        yield
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != (info.st_dev, info.st_ino):  # a program put something else in its place
            raise Unpackable(f"{_shown(name[:200])}: it changed while it was read")
        itself, mode = Path(f"/proc/self/fd/{descriptor}"), stat.S_IMODE(info.st_mode)
        itself.chmod(mode | bits)
        try:
            yield
        finally:
            with suppress(OSError):
                itself.chmod(mode)
    finally:
        os.close(descriptor)


def _add(archive: tarfile.TarFile, entry: _Entry, figures: Figures, alive: Callable[[], object]) -> None:
    info = entry.info
    member = tarfile.TarInfo(entry.path)
    member.mode, member.mtime = stat.S_IMODE(info.st_mode) & 0o777, int(info.st_mtime)  # no setuid travels
    if _is_whiteout(info):
        member.name = entry.path[: -len(entry.name)] + WHITEOUT + entry.name
        member.mode, figures.whiteouts = 0o644, figures.whiteouts + 1
        archive.addfile(member)
    elif stat.S_ISDIR(info.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
        if entry.opaque:
            figures.opaque += 1
            archive.addfile(tarfile.TarInfo(f"{entry.path}/{OPAQUE}"))
    elif stat.S_ISLNK(info.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(entry.name, dir_fd=entry.folder)
        archive.addfile(member)
    elif entry.first is not None:
        member.type, member.linkname = tarfile.LNKTYPE, entry.first
        archive.addfile(member)
    else:
        _add_file(archive, entry, member, alive)
        figures.bytes += member.size
    figures.files += 1


def _add_file(archive: tarfile.TarFile, entry: _Entry, member: tarfile.TarInfo, alive: Callable[[], object]) -> None:
    with _readable(entry.folder, entry.name, entry.info, 0o400):
        descriptor = os.open(
            entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=entry.folder
        )
    with os.fdopen(descriptor, "rb") as file:
        status: Any = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) != (entry.info.st_dev, entry.info.st_ino):
            raise Unpackable(f"{_shown(entry.path[:200])}: it changed while it was read")
        member.size = status.st_size
        archive.addfile(member, _Heard(file, alive))  # type: ignore[arg-type]  # it only reads
