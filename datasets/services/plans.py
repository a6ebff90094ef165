"""The plan of a version: what the first half of an import writes and the second half carries out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from aiplatform.lib.files import atomic_writer, write_json
from datasets.formats.listing import Listing
from datasets.formats.neutral import Parsed
from datasets.formats.writer import StoredImage
from datasets.models import Import


def write(row: Import, listing: Listing, parsed: Parsed, results: dict[str, dict[str, Any]]) -> int:
    """Write plan.json and plan.jsonl for the second half. Returns the bytes of all images."""
    size = 0
    images_root = ""
    if row.server_path:
        parsed_sources = [item.source for item in parsed.images]
        shared = parsed_sources[0].removesuffix(parsed.images[0].path) if parsed_sources else ""
        if any(item.source != shared + item.path for item in parsed.images):  # a COCO file's own names
            shared = ""
            for item in parsed.images:
                item.path = item.source
        images_root = str(listing.root / shared)
    with atomic_writer(row.folder / "plan.jsonl", "w") as out:
        for source, image in _stored(row, parsed, results):
            size += image.size_bytes
            out.write(json.dumps({"source": source} | image.as_dict(), ensure_ascii=False) + "\n")
    write_json(
        row.folder / "plan.json",
        {
            "root": str(listing.root),
            "images_root": images_root,
            "task": parsed.task,
            "classes": [info.as_dict() for info in parsed.classes],
            "coco_head": {
                "info": parsed.head.get("info", {}),
                "licenses": parsed.head.get("licenses", []),
                "categories": [[info.id, info.extra] for info in parsed.classes if info.extra],
            },
        },
    )
    return size


def _stored(row: Import, parsed: Parsed, results: dict[str, dict[str, Any]]) -> Iterator[tuple[str, StoredImage]]:
    free = max((item.id or 0 for item in parsed.images), default=0)
    shape_id = max((shape.id or 0 for shape in parsed.shapes()), default=0)
    for item in parsed.images:
        if item.id is None:
            free += 1
        shapes = []
        for shape in item.shapes:
            if shape.id is None:
                shape_id += 1
                shape.id = shape_id
            shapes.append(shape.as_dict())
        entry = results[item.source]
        still = entry.get("still")
        yield (
            str(row.folder / "stills" / still) if still else item.source,
            StoredImage(
                path=item.path,
                sha256=entry["sha256"],
                width=entry["width"],
                height=entry["height"],
                size_bytes=entry["size_bytes"],
                id=item.id if item.id is not None else free,
                split=item.split,
                label=item.label,
                shapes=shapes,
                annotated=item.annotated,
                extra=item.extra,
            ),
        )


def still_path(path: str, taken: set[str]) -> str:
    """The name of an image that is stored as PNG."""
    renamed = str(PurePosixPath(path).with_suffix(".png"))
    return f"{path}.png" if renamed != path and renamed in taken else renamed
