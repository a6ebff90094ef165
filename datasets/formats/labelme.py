"""Read LabelMe: a JSON file per image with polygons and rectangles; other shapes are counted and said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from aiplatform.lib.wording import Worded, message
from datasets.formats.image_names import Match
from datasets.formats.images import unannotated
from datasets.formats.listing import Listing
from datasets.formats.neutral import SHAPES, ClassInfo, ImageItem, Parsed, Shape, box
from datasets.formats.problems import Problems, natural
from datasets.shapes import geometry
from datasets.shapes.outlines import MAX_POINTS, is_number, spanned
from datasets.shapes.polygon import POLYGON

MAX_FILE_BYTES = 256 << 20  # LabelMe packs the image into the file
LOOKED_AT = 20
_RECTANGLE, _POLYGON = "rectangle", POLYGON.name  # LabelMe's words; for polygons it has ours
_ROTATION = "rotation"  # of X-AnyLabeling: a turned rectangle by its four corners


def fits(listing: Listing) -> bool:
    """Whether one of the first JSON files is LabelMe's."""
    return any(_load(listing, name) is not None for name in sorted(listing.with_suffix(".json"))[:LOOKED_AT])


def read(listing: Listing) -> Parsed:
    """Read all images; without a JSON file they are not annotated, with a file without shapes checked and empty.

    Class ids count from 1 in natural order of the labels. Polygons of one label and one `group_id` are one object.
    """
    parsed = Parsed(format="labelme", task=SHAPES)
    problems = parsed.problems
    files: dict[str, str] = {}
    read_shapes: list[tuple[ImageItem, str, Shape]] = []
    items = unannotated(listing)
    for name in sorted(listing.with_suffix(".json"), key=natural):
        listing.tick()
        data = _load(listing, name, problems)
        if data is None:
            continue
        parsed.labels.add(name)
        source = _image_of(listing, name, data, problems)
        if source is None:
            _count_lost(name, data, problems)
        elif source in files:
            problems.add(name, "duplicate_image", message("report.annotated_twice", file=files[source]))
            _count_lost(name, data, problems)
        else:
            files[source] = name
            item = items[source]
            item.annotated = True
            item.width, item.height = _size(data.get("imageWidth")), _size(data.get("imageHeight"))
            item.stated = len(data["shapes"]) + _count_flags(name, data.get("flags"), problems)
            read_shapes += [(item, label, shape) for label, shape in _shapes(data, name, item, problems)]
    labels = sorted({label for _item, label, _shape in read_shapes}, key=natural)
    ids = {label: number for number, label in enumerate(labels, 1)}
    parsed.classes = [ClassInfo(number, label) for label, number in ids.items()]
    for item, label, shape in read_shapes:
        shape.class_id = ids[label]
        item.shapes.append(shape)
    parsed.images = list(items.values())
    return parsed


def _count_flags(name: str, flags: Any, problems: Problems) -> int:
    """Report the classes that a file ticks for its image as a whole; how many."""
    labels = [str(key)[:200] for key, value in flags.items() if value is True] if isinstance(flags, dict) else []
    for label in labels:
        problems.skip(f"{name}: flags", "tag", message("report.tag_beside_shapes", label=label))
    return len(labels)


def _load(listing: Listing, name: str, problems: Problems | None = None) -> dict[str, Any] | None:
    path = listing.root / name
    if not 0 < path.stat().st_size <= MAX_FILE_BYTES:
        return None
    data = path.read_bytes()
    if b'"shapes"' not in data and b'"\0s\0h\0a\0p\0e\0s' not in data:
        return None
    try:
        parsed = json.loads(listing.decode(name, data, problems))
    except Worded as exc:
        if problems is not None:
            problems.add(name, "unreadable", exc.worded)
        return None
    except (ValueError, RecursionError):
        return None
    fair = isinstance(parsed, dict) and isinstance(parsed.get("shapes"), list) and "imagePath" in parsed
    return parsed if fair else None


def _image_of(listing: Listing, name: str, data: dict[str, Any], problems: Problems) -> str | None:
    """Return the image of a file: by its `imagePath`, else the only one with the name of the file."""
    near = str(PurePosixPath(name).parent).removeprefix(".")
    wanted = data.get("imagePath")
    match = listing.match(wanted, near=near) if isinstance(wanted, str) and wanted else Match(None)
    same_stem = listing.find_stem(PurePosixPath(name).stem)
    if (match.source is None or match.by) and len(same_stem) == 1:
        return same_stem[0]
    code = "report.image_in_label_file" if data.get("imageData") else "report.missing_own_image"
    match.report(problems, name, str(wanted), message(code, image=_wanted(name, data)))
    return match.source


def _wanted(name: str, data: dict[str, Any]) -> str:
    return str(data.get("imagePath") or PurePosixPath(name).stem)[:200]


def _size(value: Any) -> int | None:
    return int(value) if is_number(value) and value >= 1 else None


def _count_lost(name: str, data: dict[str, Any], problems: Problems) -> None:
    if data["shapes"]:
        problems.skip(name, "lost_shapes", message("report.file_lost"), count=len(data["shapes"]))


def _shapes(data: dict[str, Any], name: str, item: ImageItem, problems: Problems) -> Iterator[tuple[str, Shape]]:
    groups: dict[tuple[str, int], Shape] = {}
    for index, entry in enumerate(data["shapes"]):
        where = f"{name}: shapes[{index}]"
        if not isinstance(entry, dict) or not str(entry.get("label") or "").strip():
            problems.skip(where, "no_class", message("report.no_label"))
            continue
        label, kind = str(entry["label"]).strip()[:200], entry.get("shape_type") or _POLYGON
        kind = _POLYGON if kind == _ROTATION else kind
        if kind not in {_RECTANGLE, _POLYGON}:
            problems.skip(where, "other_shape", message("report.other_shape", kind=str(kind)[:20]))
            continue
        points = _points(entry.get("points"))
        if points is None or len(points) < (2 if kind == _RECTANGLE else 3):
            problems.skip(where, "short_polygon", message("report.short_shape", image=item.path))
            continue
        shape = _rectangle(points) if kind == _RECTANGLE else _polygon(points)
        if shape.area <= 0:
            code = "degenerate_box" if kind == _RECTANGLE else "degenerate_polygon"
            problems.skip(where, code, message("report.flat_shape", image=item.path))
            continue
        group = entry.get("group_id")
        if kind == _POLYGON and isinstance(group, int) and (first := groups.get((label, group))):
            _join(first, shape)
            continue
        if kind == _POLYGON and isinstance(group, int):
            groups[label, group] = shape
        shape.attributes |= _attributes(entry)
        yield label, shape


def _points(points: Any) -> list[tuple[float, float]] | None:
    if not isinstance(points, list) or len(points) > MAX_POINTS:
        return None
    is_valid = all(isinstance(point, list) and len(point) == 2 and all(map(is_number, point)) for point in points)
    return [(float(x), float(y)) for x, y in points] if is_valid else None


def _rectangle(points: list[tuple[float, float]]) -> Shape:
    left, top, width, height = spanned([[value for point in points for value in point]])
    return box(0, left, top, width, height)


def _polygon(points: list[tuple[float, float]]) -> Shape:
    ring = [value for point in points for value in point]
    return Shape(0, POLYGON.name, spanned([ring]), [ring], geometry.shoelace(ring))


def _join(first: Shape, further: Shape) -> None:
    rings: Any = first.segmentation
    rings += further.segmentation
    first.bbox = spanned([_corners(first.bbox), _corners(further.bbox)])
    first.area += further.area


def _corners(bbox: tuple[float, float, float, float]) -> list[float]:
    x, y, width, height = bbox
    return [x, y, x + width, y + height]


def _attributes(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what LabelMe stores with a shape: set flags and a description."""
    flags = entry.get("flags")
    attributes: dict[str, Any] = (
        {str(key)[:100]: True for key, value in flags.items() if value is True} if isinstance(flags, dict) else {}
    )
    if entry.get("difficult") is True:
        attributes["difficult"] = True
    if isinstance(entry.get("description"), str) and entry["description"].strip():
        attributes["description"] = entry["description"].strip()[:1000]
    return attributes
