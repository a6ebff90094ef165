"""Datasets for tests: real files, real versions, made by the product's own services."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

from PIL import Image

from accounts.models import User
from aiplatform.lib.files import remove_tree
from datasets.formats.neutral import box
from datasets.formats.writer import StoredImage
from datasets.models import Dataset, DatasetVersion
from datasets.services import versions
from datasets.storage import dataset_paths

CLASSES = [{"id": 1, "name": "cell", "supercategory": ""}, {"id": 2, "name": "plate", "supercategory": ""}]


def dataset(owner: User, name: str = "cells", **fields: Any) -> Dataset:
    """A dataset without a version."""
    made = Dataset.objects.create(owner=owner, name=name, intro=fields.pop("intro", "Images of cells"), **fields)
    remove_tree(dataset_paths.dataset_folder(made.pk))  # an earlier test's, whose row was rolled back
    return made


def picture(width: int = 40, height: int = 30, shade: int = 0) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (shade % 256, 80, 160)).save(out, "PNG")
    return out.getvalue()


def version(owned: Dataset, *, images: int = 3, task: str = "detection", split: str = "train") -> DatasetVersion:
    """A ready version: 40×30 PNGs `a/0.png` …; with "detection" one box of class 1 (even) or 2 (odd) on each;
    with "classification" labels 1 and 2 in turn; with "none" neither."""
    data = [picture(shade=n) for n in range(images)]

    def rows() -> list[StoredImage]:
        found = []
        for n, content in enumerate(data):
            class_id = 1 + n % 2
            shapes = [box(class_id, 2, 3, 10 + n % 5, 8, id=n + 1).as_dict()] if task == "detection" else []
            label = class_id if task == "classification" else None
            digest = hashlib.sha256(content).hexdigest()
            found.append(StoredImage(f"a/{n}.png", digest, 40, 30, len(content), n + 1, split, label, shapes))
        return found

    def place(target: Path) -> None:
        (target / "a").mkdir(parents=True, exist_ok=True)
        for n, content in enumerate(data):
            (target / "a" / f"{n}.png").write_bytes(content)

    made = versions.allocate(owned, by=owned.owner, note="made for a test")
    return versions.publish(made, rows, task=task, classes=CLASSES if task != "none" else [], place_images=place)
