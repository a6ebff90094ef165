"""Container images that were saved of a job: one packed archive each, in the data folder, for any machine's engine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import zstandard
from django.conf import settings

from aiplatform.lib import files, wording
from aiplatform.lib.errors import DomainError
from workers.images.containers import archive, manifests, room
from workers.images.containers.pulse import Pulse
from workers.images.models import Image
from workers.images.store import paths
from workers.supervisor.engine import Engine, Refused

PIECE = 1 << 20
LEVEL = 3


class BrokenArchive(DomainError, code="broken_layer"): ...


def write(pieces: Iterable[bytes], target: Path, alive: Callable[[int], object]) -> tuple[int, int, str]:
    """Write an archive, packed, whole or not at all; bytes before and after packing, and the checksum of the file.

    Raises:
        BrokenArchive: it breaks off. An engine that fails on its way ends its answer as if all were well.
    """
    part = target.with_name(f".{target.name}.export")
    packer, sha, before, after = zstandard.ZstdCompressor(level=LEVEL).compressobj(), hashlib.sha256(), 0, 0
    last = b""
    try:
        with paths.closed_file(part) as file:
            for piece in pieces:
                before += len(piece)
                last = (last + piece[-len(archive.END) :])[-len(archive.END) :]
                packed = packer.compress(piece)
                sha.update(packed)
                after += file.write(packed)
                alive(len(piece))
            packed = packer.flush()
            sha.update(packed)
            after += file.write(packed)
            file.flush()
            os.fsync(file.fileno())
        if last != archive.END or not _names_an_image(part):
            raise BrokenArchive(wording.message("image.export_incomplete"))
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
    files.flush_folder(target.parent)
    return before, after, sha.hexdigest()


def _names_an_image(path: Path) -> bool:
    """Whether a packed archive says which images it holds, as docker does or as OCI has it."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as packed:
        return archive.names_an_image(packed)


def load(own: Engine, image: Image, pulse: Pulse) -> None:
    """Load a saved image into this node's engine, if it is unchanged.

    Raises:
        BrokenArchive: it is not, or is for another kind of processor.
        EngineFull: the engine has no room for it.
        Refused, Unanswered: the engine does not take it.
    """
    kind = str(image.facts.get("architecture") or "")
    if kind and kind != manifests.architecture():
        facts = {"node": settings.NODE, "needed": kind, "there": manifests.architecture()}
        raise BrokenArchive(wording.message("image.other_processor", **facts))
    path = paths.packed(image.pk)
    if _checksum(path, pulse) != image.sha256:
        why = wording.message("image.layer_checksum")
        raise BrokenArchive(wording.message("image.layer_broken", name=str(image), why=why))
    room.check(own, image.unpacked_bytes)
    output = pulse.during(lambda: own.load(None, _unpacked(path, pulse.count)))
    try:
        own.image(image.reference)
    except Refused:
        raise Refused(500, output[-300:] or "the engine took the image and does not have it") from None


def _checksum(path: Path, alive: Callable[[int], object]) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            sha.update(piece)
            alive(0)
    return sha.hexdigest()


def _unpacked(path: Path, count: Callable[[int], object]) -> Iterator[bytes]:
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as packed:
        counted = 0
        while piece := packed.read(PIECE):
            count(file.tell() - counted)
            counted = file.tell()
            yield piece
