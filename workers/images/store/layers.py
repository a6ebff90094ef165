"""The chain of layers that an image is made of, unpacked on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from aiplatform.lib import disk, wording
from aiplatform.lib.errors import DomainError
from workers.images.models import Image
from workers.images.store import paths, unpacking
from workers.supervisor import log_lines

MAX_LAYERS = 30  # saved on top of one another; the kernel takes hundreds


class BrokenLayer(DomainError, code="broken_layer"): ...


def chain(image: Image) -> list[Image]:
    """The saved images that one consists of, the lowest first; none for an engine."""
    images: list[Image] = []
    at: Image | None = image
    while at is not None and at.kind == Image.Kind.SAVED:
        images.append(at)
        at = at.parent
    return images[::-1]


def here(
    image: Image, alive: Callable[[], object] = lambda: None, on_line: Callable[[str], object] = lambda line: None
) -> list[Path]:
    """Folders of the saved layers on this machine, the lowest first; what is not there is unpacked.

    Args:
        told: called with a line for the log for each that was unpacked.

    Raises:
        BrokenLayer: one cannot be unpacked.
    """
    folders, links = [], chain(image)
    for number, image_layer in enumerate(links, 1):
        missing, started_at = not paths.layer(image_layer.sha256).is_dir(), time.monotonic()
        folders.append(_here(image_layer, alive))
        if missing:
            facts = {
                "number": number,
                "of": len(links),
                "bytes": image_layer.size_bytes,
                "seconds": time.monotonic() - started_at,
            }
            on_line(log_lines.line(log_lines.IMAGE, "layer", **facts))
    return folders


def _here(image: Image, alive: Callable[[], object]) -> Path:
    folder = paths.layer(image.sha256)
    if folder.is_dir():
        return folder
    paths.open_folder(folder.parent)
    try:
        unpacking.unpack(
            paths.packed(image.pk), folder, sha256=image.sha256, most_bytes=image.unpacked_bytes,
            most_files=image.files, alive=alive,
        )  # fmt: skip
    except (DomainError, OSError) as met:
        exc = disk.DiskFull() if disk.is_full(met) else met
        why = wording.of_error(exc) if isinstance(exc, DomainError) else wording.verbatim(exc)
        raise BrokenLayer(wording.message("image.layer_broken", name=str(image), why=why)) from None
    return folder
