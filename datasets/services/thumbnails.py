"""Thumbnails, made ahead by a worker, or on demand where one is missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import write_atomically
from datasets.models import Asset, DatasetVersion
from datasets.storage import dataset_paths, image_files

SMALL_PX = 256  # such images are their own thumbnails
BATCH = 1000
TILE_PX = (112, 84)  # width and height of a cover in a sheet: twice what a row of a list shows


def is_small(asset: Asset) -> bool:
    """Whether the original is as small as a thumbnail would be."""
    return asset.width <= SMALL_PX and asset.height <= SMALL_PX


def read(asset: Asset) -> bytes:
    """The WebP thumbnail of an image, made now if it is not there.

    Raises:
        BadImage, FileNotFoundError, OutsideRoot: the original cannot be read (any more).
    """
    path = dataset_paths.thumbnail_path(asset)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return _make(asset)


def sheet(assets: Sequence[Asset | None]) -> bytes:
    """A WebP with the thumbnails of these images as tiles of a column; those that cannot be read stay transparent."""
    return image_files.sheet([_readable(asset) if asset else None for asset in assets], *TILE_PX)


def _readable(asset: Asset) -> bytes | None:
    try:
        if is_small(asset):
            with dataset_paths.open_image(asset) as file:
                return file.read()
        return read(asset)
    except (image_files.BadImage, OSError, DomainError):
        return None


def _make(asset: Asset) -> bytes:
    with dataset_paths.open_image(asset) as file:
        data = image_files.thumbnail(file)
    path = dataset_paths.thumbnail_path(asset)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return data


def make_all(version: DatasetVersion, *, after: int = 0) -> int | None:
    """Make the thumbnails of the next images; the id to go on after, None when all are done."""
    batch = list(version.assets.filter(pk__gt=after).order_by("pk")[:BATCH])
    for asset in batch:
        asset.version = version
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(_make_quietly, batch))
    return batch[-1].pk if len(batch) == BATCH else None


def _make_quietly(asset: Asset) -> None:
    if is_small(asset) or dataset_paths.thumbnail_path(asset).exists():
        return
    try:
        _make(asset)
    except (image_files.BadImage, OSError, DomainError):
        return  # shown as missing in the gallery; the import has already judged the original
