"""Write a version's three files: manifest.jsonl, annotations.json (COCO) and dataset.json."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiplatform.lib.files import atomic_writer, write_json
from datasets.formats.neutral import SHAPES, SPLITS


@dataclass(slots=True)
class StoredImage:
    """One image as a version keeps it; `shapes` are COCO annotations without image_id.

    Args:
        size_bytes: of the stored file.
        id: COCO image id; unique, from 1.
        annotated: False keeps the image out of annotations.json: an image listed there without a shape is empty.
        extra: further fields of the image in annotations.json.
    """

    path: str
    sha256: str
    width: int
    height: int
    size_bytes: int
    id: int
    split: str = ""
    label: int | None = None
    shapes: list[dict[str, Any]] = field(default_factory=list)
    annotated: bool = True
    extra: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class CocoHead:
    """What a COCO file says about itself and its classes, given back as it came; empty for other formats."""

    info: dict[str, Any] = field(default_factory=dict)
    licenses: list[Any] = field(default_factory=list)
    categories: dict[int, dict[str, Any]] = field(default_factory=dict)  # class id → keypoints, skeleton, …


@dataclass(slots=True)
class Written:
    """Counts and sizes of what was written."""

    manifest_sha256: str
    images: int
    annotations: int
    size_bytes: int
    splits: dict[str, int]


def write(
    folder: Path,
    images: Iterable[StoredImage],
    *,
    task: str,
    classes: list[dict[str, Any]],
    head: dict[str, Any],
    coco_head: CocoHead | None = None,
) -> Written:
    """Write all files of a version into `folder`; memory does not grow with the number of images.

    Args:
        head: dataset_id, version and name for dataset.json.
        classes: {"id", "name", "supercategory"} in the order to keep.
        coco_head: what the COCO file it came from says beyond that.
    """
    digest = hashlib.sha256()
    splits: Counter[str] = Counter()
    count = size = labelled = 0
    coco = _CocoFile(folder, classes, head, coco_head or CocoHead()) if task == SHAPES else None
    with atomic_writer(folder / "manifest.jsonl") as manifest:
        for image in images:
            line = {
                "path": image.path,
                "sha256": image.sha256,
                "width": image.width,
                "height": image.height,
                "split": image.split,
                "label": image.label,
            }
            data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            digest.update(data)
            manifest.write(data)
            splits[image.split] += 1
            count, size, labelled = count + 1, size + image.size_bytes, labelled + (image.label is not None)
            if coco and image.annotated:
                coco.add(image)
    annotations = coco.close() if coco else labelled
    if coco:  # the manifest's hash covers the annotations too
        digest.update(coco.digest.digest())
    written = Written(
        digest.hexdigest(), count, annotations, size, {name: splits[name] for name in (*SPLITS, "") if splits[name]}
    )
    write_json(
        folder / "dataset.json",
        {"format": 1}
        | head
        | {"task": task, "classes": classes, "splits": written.splits, "images": count, "annotations": annotations},
    )
    return written


class _CocoFile:
    """annotations.json written in one pass: images and annotations to files of their own, joined at the end."""

    def __init__(self, folder: Path, classes: list[dict[str, Any]], head: dict[str, Any], imported: CocoHead) -> None:
        self.path = folder / "annotations.json"
        self.parts = [folder / ".images.part", folder / ".annotations.part"]
        self.images, self.annotations = (part.open("wb") for part in self.parts)
        info = {"description": head["name"], "version": str(head["version"])} | imported.info
        self.head = {"info": info, "licenses": imported.licenses}
        self.classes = [imported.categories.get(item["id"], {}) | item for item in classes]
        self.digest = hashlib.sha256()
        self.counts = [0, 0]

    def add(self, image: StoredImage) -> None:
        entry = {
            "id": image.id,
            "file_name": image.path,
            "width": image.width,
            "height": image.height,
            "split": image.split,
        }
        self._write_entry(0, image.extra | entry)
        for shape in image.shapes:
            annotation = {key: value for key, value in shape.items() if key != "kind"}
            self._write_entry(1, annotation | {"image_id": image.id})

    def _write_entry(self, which: int, entry: dict[str, Any]) -> None:
        data = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
        self.digest.update(data)
        file = self.annotations if which else self.images
        file.write((b",\n" if self.counts[which] else b"") + data)
        self.counts[which] += 1

    def close(self) -> int:
        self.images.close()
        self.annotations.close()
        opening = json.dumps(self.head, ensure_ascii=False)[:-1].encode()
        with atomic_writer(self.path) as out:
            out.write(opening + b',"categories":' + json.dumps(self.classes, ensure_ascii=False).encode())
            for key, part in zip((b"images", b"annotations"), self.parts, strict=True):
                out.write(b',\n"' + key + b'":[\n')
                with part.open("rb") as file:
                    while block := file.read(1 << 20):
                        out.write(block)
                out.write(b"]")
                part.unlink()
            out.write(b"}\n")
        return self.counts[1]


def written_classes(folder: Path) -> list[dict[str, Any]]:
    """What annotations.json of a version says of its classes: keypoints, skeleton; its first line, so never much.

    A version without the file has none.
    """
    try:
        with (folder / "annotations.json").open("rb") as file:
            line = file.readline().rstrip(b",\n")
    except FileNotFoundError:
        return []
    head = json.loads(line if line.endswith(b"}") else line + b"}")
    classes: list[dict[str, Any]] = head["categories"]
    return classes
