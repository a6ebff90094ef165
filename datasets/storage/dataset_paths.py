"""Paths of the bytes of datasets, and the functions that open them."""

from __future__ import annotations

import os
from io import BufferedReader
from pathlib import Path

from django.conf import settings

from aiplatform.lib.files import open_beneath
from datasets.models import Asset, Dataset, DatasetVersion


def root() -> Path:
    """Return the data root; everything below is the platform's."""
    return Path(settings.DATA_ROOT)


def dataset_folder(dataset_id: int) -> Path:
    return root() / "datasets" / str(dataset_id)


def version_folder(dataset: Dataset, number: int) -> Path:
    """The folder a version has once it is whole."""
    return dataset_folder(dataset.pk) / f"v{number}"


def building_folder(dataset: Dataset, number: int) -> Path:
    """The folder a version is made in; renamed to `version_folder` in one step."""
    return dataset_folder(dataset.pk) / f".v{number}.building"


def thumbnail_folder(version: DatasetVersion) -> Path:
    return root() / "thumbnails" / str(version.pk)


def thumbnail_path(asset: Asset) -> Path:
    """Return the path of a thumbnail: a thousand to a folder, as huge folders are slow to list."""
    return root() / "thumbnails" / str(asset.version_id) / f"{asset.pk // 1000}" / f"{asset.pk}.webp"


def open_image(asset: Asset) -> BufferedReader:
    """The stored bytes of an image; no link on the way is followed.

    Raises:
        OutsideRoot, FileNotFoundError: data left in place on the server was changed since.
    """
    return os.fdopen(open_beneath(asset.version.images_path, asset.path), "rb")
