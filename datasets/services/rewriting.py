"""Versions that are made of another one: the same images, with other splits or other annotations.

`Import.wanted` names the way, `Import.split` holds what it needs (`imports.start_from`); rooms above register ways from
their app's `AppConfig.ready()`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiplatform.lib.files import write_json, written_whole
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import Message
from datasets.formats.writer import StoredImage
from datasets.models import DatasetVersion, Import


@dataclass(frozen=True)
class Way:
    """How a version is made of another.

    Attributes:
        name: at most 10 characters, no format's name.
        write_plan: writes the plan that `committing` carries out, by `write`; again where a worker takes over.
        story: what the new version says of its making.
    """

    name: str
    write_plan: Callable[[Import], None]
    story: Callable[[Import], Message]


WAYS: Registry[Way] = Registry("way to make a version of another")


def write(row: Import, version: DatasetVersion, images: Iterable[StoredImage], **about: Any) -> None:
    """Write the plan: `images` of the version as they will stand in the new one, and `task`, `classes`, `coco_head`."""
    place = {"root": str(version.images_path), "images_root": version.images_root, "shared": True}
    write_from(row, ((image.path, image) for image in images), place, **about)


def write_from(row: Import, images: Iterable[tuple[str, StoredImage]], place: Mapping[str, Any], **about: Any) -> None:
    """Write the plan of images of several versions, each with where it lies.

    Args:
        place: "root" of what lies somewhere, "shared": it is linked; "copied": folders of which it is copied instead,
            because somebody else may change it there.
    """
    row.folder.mkdir(parents=True, exist_ok=True)
    with written_whole(row.folder / "plan.jsonl", "w") as out:
        for source, image in images:
            out.write(json.dumps({"source": source} | image.as_dict(), ensure_ascii=False) + "\n")
    write_json(row.folder / "plan.json", dict(place) | about)
