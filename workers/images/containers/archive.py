"""Archives for container engines, made while they are sent: images as `docker save` writes them, and layers."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import zstandard

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.images.containers.manifests import Manifest
from workers.images.store.archive import WHITEOUT

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)  # of an archive, and of nothing that was cut


class BrokenBlob(DomainError, code="broken_blob"):
    """A blob in the data folder has another digest; it was removed, so that it is fetched again."""


def stream(manifest: Manifest, name: str, path_of: Callable[[str], Path]) -> tuple[int, Iterator[bytes]]:
    """Length in bytes, and the bytes, which break off with `BrokenBlob` at what is not what its digest says.

    Args:
        name: what the engine is to call the image, with its tag.
        path_of: where a blob lies, by its digest.
    """
    config = f"{_hex(manifest.config.digest)}.json"
    layers = [f"{_hex(blob.digest)}.tar" for blob in manifest.layers]
    index = json.dumps([{"Config": config, "RepoTags": [name], "Layers": layers}]).encode()
    members: dict[str, Path | bytes] = {config: path_of(manifest.config.digest)}
    members |= {layer: path_of(blob.digest) for layer, blob in zip(layers, manifest.layers, strict=True)}
    digests = dict(zip((config, *layers), (_hex(blob.digest) for blob in manifest.blobs), strict=True))
    members["manifest.json"] = index
    length = sum(BLOCK + _padded(_size(content)) for content in members.values()) + 2 * BLOCK
    return length, _pieces(members, digests)


def names_an_image(source: IO[bytes]) -> bool:
    """Whether an archive says which images it holds, as docker does or as OCI has it; it is read, not unpacked."""
    try:
        with tarfile.open(fileobj=source, mode="r|", bufsize=CHUNK) as archive:
            return any(member.name in ("manifest.json", "index.json") for member in archive)
    except tarfile.TarError:
        return False


def _pieces(members: dict[str, Path | bytes], digests: dict[str, str]) -> Iterator[bytes]:
    for name, content in members.items():
        size = _size(content)
        header = tarfile.TarInfo(name)
        header.size, header.mode = size, 0o644
        yield header.tobuf(tarfile.GNU_FORMAT)
        digest = hashlib.sha256()
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
                yield piece
        if isinstance(content, Path) and digest.hexdigest() != digests[name]:
            content.unlink(missing_ok=True)
            raise BrokenBlob(wording.message("image.blob_broken"))
        yield b"\0" * (_padded(size) - size)
    yield END


def _size(content: Path | bytes) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def layer(packed: Path, folder: str, alive: Callable[[], object]) -> Iterator[bytes]:
    """The packed box as an archive for the root of a container: readable for everyone, owned by root."""
    top = folder.strip("/")
    for name in (str(Path(top).parent), top):
        yield _head(name, tarfile.DIRTYPE, 0o755)
    with (
        packed.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r|") as archive,
    ):
        for entry in archive:
            alive()
            if entry.name.rpartition("/")[2].startswith(WHITEOUT):
                continue  # nothing below is hidden: the folder is the job's alone
            entry.name = f"{top}/{entry.name}"
            entry.linkname = f"{top}/{entry.linkname}" if entry.islnk() else entry.linkname
            entry.mode |= 0o555 if entry.isdir() or entry.mode & 0o100 else 0o444
            entry.pax_headers = {}
            yield entry.tobuf(tarfile.PAX_FORMAT)
            yield from _content(archive, entry)
    yield END


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> Iterator[bytes]:
    content = archive.extractfile(entry) if entry.isreg() else None
    while content and (piece := content.read(CHUNK)):
        yield piece
    if content:
        yield b"\0" * (-entry.size % BLOCK)


def _head(name: str, kind: bytes, mode: int) -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.mode = kind, mode
    return header.tobuf(tarfile.PAX_FORMAT)
