"""Read a version's own annotations.json again, an entry at a time.

`writer` puts every image and every annotation on a line of its own, annotations in the order of their images, so a file
of any length is read in constant memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

NAME = "annotations.json"
#: Fields of an image that the platform itself writes; others came with the data.
IMAGE_FIELDS = frozenset({"id", "file_name", "width", "height", "split"})
_decode = json.JSONDecoder().raw_decode


def head(folder: Path) -> dict[str, Any]:
    """Return the head of annotations.json: {"info", "licenses", "categories"}; {} without the file."""
    if not (folder / NAME).exists():
        return {}
    with (folder / NAME).open(encoding="utf-8") as text:
        fields: dict[str, Any] = json.loads(text.readline().rstrip().rstrip(",") + "}")
    return fields


def images(folder: Path) -> Iterator[dict[str, Any]]:
    """The `images` of a version's folder, in its order: {"id", "file_name", "width", "height", "split"}."""
    return _entries(folder / NAME, "images")


def objects(folder: Path) -> Iterator[dict[str, Any]]:
    """The `annotations` of a version's folder, those of an image one after the other."""
    return _entries(folder / NAME, "annotations")


def by_image(folder: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Every image with its annotations; images without any come too."""
    groups = groupby(objects(folder), key=lambda entry: entry["image_id"])
    following = next(groups, None)
    for image in images(folder):
        if following is not None and following[0] == image["id"]:
            yield image, list(following[1])
            following = next(groups, None)
        else:
            yield image, []


def lines(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None, list[dict[str, Any]]]]:
    """Every line of the manifest with its image in annotations.json and its annotations.

    None means an image that annotations.json does not list: it is not annotated.
    """
    listed = by_image(folder) if (folder / NAME).exists() else iter(())
    following = next(listed, None)
    with (folder / "manifest.jsonl").open(encoding="utf-8") as manifest:
        for text in manifest:
            line = json.loads(text)
            if following is not None and following[0]["file_name"] == line["path"]:
                yield line, *following
                following = next(listed, None)
            else:
                yield line, None, []


def _entries(path: Path, key: str) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(f'"{key}":['):
                break
        for line in lines:
            if line.startswith("]"):
                return
            entry, end = _decode(line)
            yield entry
            if line[end : end + 1] == "]":
                return
