"""An archive of one container image as `docker save` writes it, made while it is sent; every engine takes it."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from workers.images.containers.manifests import Manifest

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE


def stream(manifest: Manifest, name: str, path_of: Callable[[str], Path]) -> tuple[int, Iterator[bytes]]:
    """Length in bytes, and the bytes.

    Args:
        name: what the engine is to call the image, with its tag.
        path_of: where a blob lies, by its digest.
    """
    config = f"{_hex(manifest.config.digest)}.json"
    layers = [f"{_hex(blob.digest)}.tar" for blob in manifest.layers]
    index = json.dumps([{"Config": config, "RepoTags": [name], "Layers": layers}]).encode()
    members: dict[str, Path | bytes] = {config: path_of(manifest.config.digest)}
    members |= {layer: path_of(blob.digest) for layer, blob in zip(layers, manifest.layers, strict=True)}
    members["manifest.json"] = index
    length = sum(BLOCK + _padded(_size(content)) for content in members.values()) + 2 * BLOCK
    return length, _pieces(members)


def _pieces(members: dict[str, Path | bytes]) -> Iterator[bytes]:
    for name, content in members.items():
        size = _size(content)
        about = tarfile.TarInfo(name)
        about.size, about.mode = size, 0o644
        yield about.tobuf(tarfile.GNU_FORMAT)
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece
        yield b"\0" * (_padded(size) - size)
    yield b"\0" * (2 * BLOCK)


def _size(content: Path | bytes) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
