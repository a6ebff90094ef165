"""Write COCO files: ids from 1, areas by shoelace, no degenerate shapes; what came as COCO leaves as it came.

Pure and streaming: memory holds one number per image, never the annotations. What the common
tools do differently and what it breaks was measured with pycocotools: ids from 0 make a perfect
detection count as missed, an empty segmentation crashes `annToMask`, a polygon of two points is
read as a box.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, TextIO

from datasets import shapes
from datasets.shapes.kind import Flaw

REPORTED = 1_000  # refused shapes named in the report; more are only counted


class BadExport(ValueError):
    """The rows contradict COCO: doubled ids, unknown categories, unsafe paths. A bug of ours."""


@dataclass(frozen=True, slots=True)
class Category:
    """A class. `id` is stable over exports; `extra` is what the file it came with says beyond that (keypoint names)."""

    id: int
    name: str
    supercategory: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Image:
    """An upright image. `file_name` is relative to the folder of images, with `/`."""

    id: int
    file_name: str
    width: int
    height: int
    split: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One object.

    Args:
        rings: in pixels, meant as its kind means them.
        kind: a name of datasets.shapes.
        came_as: fields of the annotation it was in the version it came with; None for what was drawn here.
        untouched: not changed since the import, so it is exported unchanged.
    """

    id: int
    image_id: int
    category_id: int
    rings: list[list[float]]
    kind: str = shapes.DEFAULT.name
    came_as: Mapping[str, Any] | None = None
    untouched: bool = False


@dataclass(slots=True)
class Report:
    """Counts of what was written, and what was left out and why (annotation id, message)."""

    images: int = 0
    annotations: int = 0
    categories: int = 0
    left_out: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)


def write(
    out: TextIO,
    *,
    info: Mapping[str, Any],
    categories: Iterable[Category],
    images: Iterable[Image],
    annotations: Iterable[Annotation],
    licenses: Iterable[Mapping[str, Any]] = (),
    crossings: bool = True,
) -> Report:
    """Stream one COCO file to `out`.

    Args:
        info: becomes `info`; must carry a `version`.
        images: every image once, empty ones included.
        annotations: ids strictly rising.
        crossings: False trusts that outlines were checked for crossing lines when they were saved.

    Raises:
        BadExport: an id of an image or annotation below 1, one that is doubled, an unknown image or category, a
            path that is absolute, climbs or is doubled, a size that is not a positive whole number.
    """
    if not info.get("version"):
        raise BadExport("info has no version")
    report = Report()
    out.write('{"info":' + _dump(dict(info)) + ',"licenses":' + _dump(list(licenses)) + ',"categories":[')
    category_ids = _write_categories(out, categories, report)
    out.write('],\n"images":[')
    sizes = _write_images(out, images, report)
    out.write('],\n"annotations":[')
    _write_annotations(out, annotations, category_ids, sizes, report, crossings)
    out.write("]}\n")
    return report


def _write_categories(out: TextIO, categories: Iterable[Category], report: Report) -> frozenset[int]:
    ids: set[int] = set()
    names: set[str] = set()
    for category in categories:
        if category.id in ids or category.name in names:
            raise BadExport(f"category {category.id} {category.name!r} is doubled")
        out.write(_comma(report.categories))
        fields = {"id": category.id, "name": category.name, "supercategory": category.supercategory}
        out.write(_dump({**category.extra, **fields}))
        ids.add(category.id)
        names.add(category.name)
        report.categories += 1
    return frozenset(ids)


def _write_images(out: TextIO, images: Iterable[Image], report: Report) -> dict[int, tuple[int, int]]:
    sizes: dict[int, tuple[int, int]] = {}
    paths: set[str] = set()
    for image in images:
        if image.id < 1 or image.id in sizes:
            raise BadExport(f"image id {image.id} is doubled or counts from 0")
        if type(image.width) is not int or type(image.height) is not int or min(image.width, image.height) < 1:
            raise BadExport(f"image {image.id} has no whole size")
        _check_path(image.file_name, paths)
        entry: dict[str, Any] = {
            "id": image.id,
            "file_name": image.file_name,
            "width": image.width,
            "height": image.height,
        }
        if image.split:
            entry["split"] = image.split
        out.write(_comma(report.images) + _dump(entry))
        sizes[image.id] = (image.width, image.height)
        report.images += 1
    return sizes


def _check_path(file_name: str, paths: set[str]) -> None:
    path = PurePosixPath(file_name)
    if path.is_absolute() or ".." in path.parts or "\\" in file_name or str(path) != file_name:
        raise BadExport(f"path {file_name!r} is not a plain relative path")
    if file_name in paths:
        raise BadExport(f"path {file_name!r} stands for two images")
    paths.add(file_name)


def _write_annotations(
    out: TextIO,
    annotations: Iterable[Annotation],
    categories: frozenset[int],
    sizes: Mapping[int, tuple[int, int]],
    report: Report,
    crossings: bool,
) -> None:
    last = 0
    for annotation in annotations:
        if annotation.id <= last:
            raise BadExport(f"annotation id {annotation.id} does not rise")
        last = annotation.id
        if annotation.category_id not in categories or annotation.image_id not in sizes:
            raise BadExport(f"annotation {annotation.id} names an unknown image or category")
        width, height = sizes[annotation.image_id]
        fields = fields_of(annotation, width, height, crossings=crossings)
        if isinstance(fields, Flaw):
            report.left_out += 1
            if len(report.refused) < REPORTED:
                report.refused.append((annotation.id, fields.text))
            continue
        _write_annotation(out, annotation, fields, report)


def fields_of(annotation: Annotation, width: int, height: int, *, crossings: bool = False) -> dict[str, Any] | Flaw:
    """What COCO says of an object of an image of `width` × `height` pixels but for ids, or why it cannot be written."""
    if annotation.came_as is not None and annotation.untouched:
        return {"segmentation": annotation.rings, **annotation.came_as}
    kind = shapes.get(annotation.kind)
    flaw = kind.flaw(annotation.rings, width=width, height=height, crossings=crossings)
    if flaw is not None:
        return flaw
    return _with_source_fields(kind.coco(annotation.rings, width=width, height=height), annotation.came_as or {})


def _with_source_fields(drawn: Mapping[str, Any], came_as: Mapping[str, Any]) -> dict[str, Any]:
    """Return a changed shape with the other fields of its source annotation: crowds, foreign fields.

    Keypoints and the like are places on the image, not in the box, so a better outline leaves them right.
    """
    further = {key: value for key, value in came_as.items() if key != "attributes"}
    others = {key: value for key, value in (came_as.get("attributes") or {}).items() if key not in {"shape", "rings"}}
    attributes = others | drawn.get("attributes", {})
    entry = {**further, **drawn, "iscrowd": came_as.get("iscrowd", 0)}
    return entry | {"attributes": attributes} if attributes else entry


def _write_annotation(out: TextIO, annotation: Annotation, fields: Mapping[str, Any], report: Report) -> None:
    ids = {"id": annotation.id, "image_id": annotation.image_id, "category_id": annotation.category_id}
    out.write(_comma(report.annotations) + _dump(ids | {key: fields[key] for key in fields if key not in ids}))
    report.annotations += 1


def _comma(already: int) -> str:
    return ",\n" if already else "\n"


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
