"""Versions that are made of another one: the same images, with other splits or other annotations.

`Import.wanted` names the rewrite, `Import.split` holds its parameters (`imports.start_from`); other apps register
rewrites from their `AppConfig.ready()`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiplatform.lib.files import atomic_writer, write_json
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import Message
from datasets.formats.writer import StoredImage
from datasets.models import DatasetVersion, Import


@dataclass(frozen=True)
class Rewrite:
    """How a version is made of another.

    Attributes:
        name: at most 10 characters, no format's name.
        write_plan: writes the plan that `committing` carries out, by `write`; again if another worker takes over.
        story: describes how the new version was made.
    """

    name: str
    write_plan: Callable[[Import], None]
    story: Callable[[Import], Message]


REWRITES: Registry[Rewrite] = Registry("rewrite of a version")


def write(row: Import, version: DatasetVersion, images: Iterable[StoredImage], **facts: Any) -> None:
    """Write the plan: `images` of the version as stored in the new one, and `task`, `classes`, `coco_head`."""
    location = {"root": str(version.images_path), "images_root": version.images_root, "shared": True}
    write_from(row, ((image.path, image) for image in images), location, **facts)


def write_from(
    row: Import, images: Iterable[tuple[str, StoredImage]], location: Mapping[str, Any], **facts: Any
) -> None:
    """Write the plan of images of several versions, each with its location.

    Args:
        location: "root" of the images, "shared": they are linked; "copied": folders from which they are copied instead,
            because other users may change them there.
    """
    row.folder.mkdir(parents=True, exist_ok=True)
    with atomic_writer(row.folder / "plan.jsonl", "w") as out:
        for source, image in images:
            out.write(json.dumps({"source": source} | image.as_dict(), ensure_ascii=False) + "\n")
    write_json(row.folder / "plan.json", dict(location) | facts)
