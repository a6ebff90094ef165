"""Small pictures and data sets on disk, made on the spot."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image


def picture(
    width: int = 40, height: int = 30, kind: str = "PNG", colour: tuple[int, int, int] = (200, 30, 30), **save: Any
) -> bytes:
    """An image file of one colour."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, kind, **save)
    return out.getvalue()


def put(root: Path, files: dict[str, bytes | str]) -> Path:
    """Write `files` (relative name → content) below `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def coco(count: int = 2, **changes: Any) -> dict[str, Any]:
    """A COCO file of `count` pictures 0.png …, one box on each, ids from 0."""
    data: dict[str, Any] = {
        "images": [{"id": n, "file_name": f"{n}.png", "width": 40, "height": 30} for n in range(count)],
        "categories": [{"id": 7, "name": "cell", "supercategory": "blood"}, {"id": 3, "name": "plate"}],
        "annotations": [
            {"id": n, "image_id": n, "category_id": 7, "bbox": [1, 2, 10, 12], "area": 120, "iscrowd": 0}
            for n in range(count)
        ],
    }
    return data | changes


def coco_folder(root: Path, data: dict[str, Any] | str, images: int = 2) -> Path:
    """`data` as annotations.json beside `images` pictures."""
    text = data if isinstance(data, str) else json.dumps(data)
    files: dict[str, bytes | str] = {f"images/{n}.png": picture() for n in range(images)}
    return put(root, files | {"annotations.json": text})


def voc_xml(name: str, *boxes: tuple[str, int, int, int, int], width: int = 40, height: int = 30) -> str:
    objects = "".join(
        f"<object><name>{label}</name><bndbox><xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
        for label, a, b, c, d in boxes
    )
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation><filename>{name}</filename>{size}{objects}</annotation>"
