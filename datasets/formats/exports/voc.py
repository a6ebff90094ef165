"""Write Pascal VOC: an XML file per image, boxes in whole pixels, lists of the splits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from xml.sax.saxutils import escape

from django.utils.translation import gettext_lazy as _

from datasets.formats.exports.comparison import WrittenObject, head_losses, image_losses, object_losses
from datasets.formats.exports.export import Drawn, ExportFormat, Notes, Piece, Source, box_of, carried
from datasets.formats.neutral import SPLITS
from datasets.formats.problems import natural
from datasets.shapes import geometry

WIDENED = "a box narrower than a pixel, written one pixel wide"
MARKS = ("difficult", "truncated", "occluded")


class VocFormat(ExportFormat):
    """Annotations/, JPEGImages/, ImageSets/Main/: one flat folder each, as the format wants it."""

    name = "voc"
    label = "Pascal VOC"
    loses = _(
        "Boxes only, in integer pixels: polygons become their bounding boxes. Crowd objects, points and class "
        "ids are omitted."
    )
    readme_lines = (
        "All images lie in one folder; where names would clash, folders are part of them, joined by two underscores.",
        "Coordinates are whole pixels from 0, rounded, so a side is at most half a pixel off.",
        "An image without an XML file was not annotated; one without objects was looked at and is empty.",
    )

    def files(self, source: Source, notes: Notes) -> Iterator[Piece]:
        names = {item["id"]: item["name"] for item in source.classes}
        flat = _flatten_names([image.path for image in source.images()])
        lists: dict[str, list[str]] = defaultdict(list)
        used: set[int] = set()
        for image in source.images():
            name = flat[image.path]
            stem = PurePosixPath(name).stem
            lists[image.split].append(stem)
            if source.with_images:
                yield Piece(f"JPEGImages/{name}", image=image.path)
            if image.annotated:
                yield Piece(f"Annotations/{stem}.xml", _xml(image, name, source, names, notes).encode())
                used.update(entry["category_id"] for entry, _rings in carried(image, Notes()))
            notes.add_all(image_losses(image))
        for split in SPLITS:
            if lists[split]:
                yield Piece(f"ImageSets/Main/{split}.txt", "".join(f"{stem}\n" for stem in lists[split]).encode())
        order = sorted(used, key=lambda number: natural(names[number]))
        ids = {number: index for index, number in enumerate(order, 1)}  # as the reader numbers names
        notes.add_all(head_losses(source.classes, source.head, ids))


def _flatten_names(paths: list[str]) -> dict[str, str]:
    """Map each path to a name whose stem is unique."""
    counts = Counter(PurePosixPath(path).stem for path in paths)
    taken: set[str] = set()
    names = {}
    for path in paths:
        name = PurePosixPath(path)
        stem = name.stem if counts[name.stem] == 1 else "__".join(name.with_suffix("").parts)
        if stem in taken:  # the same name with another ending
            stem = f"{stem}__{name.suffix[1:]}"
        while stem in taken:
            stem += "_"
        taken.add(stem)
        names[path] = stem + name.suffix
    return names


def _xml(image: Drawn, name: str, source: Source, names: dict[int, str], notes: Notes) -> str:
    head = (
        f"<annotation>\n  <folder>JPEGImages</folder>\n  <filename>{escape(name)}</filename>\n"
        f"  <source><database>{escape(source.title)}</database><image>{escape(image.path)}</image></source>\n"
        f"  <size><width>{image.width}</width><height>{image.height}</height><depth>3</depth></size>\n"
        "  <segmented>0</segmented>\n"
    )
    return head + "".join(_objects(image, names, notes)) + "</annotation>\n"


def _objects(image: Drawn, names: dict[int, str], notes: Notes) -> Iterator[str]:
    for entry, rings in carried(image, notes):
        left, top, width, height = box_of(entry, image)
        x0, x1 = _round_ends(left, left + width, image.width, notes)
        y0, y1 = _round_ends(top, top + height, image.height, notes)
        attributes = entry.get("attributes") or {}
        box = geometry.Box(x0, y0, x1 - x0, y1 - y0)
        written = WrittenObject(
            box=box, attributes=frozenset(mark for mark in MARKS if attributes.get(mark) in (True, 1))
        )
        notes.add_all(object_losses(entry, rings, written, image))
        marks = "".join(f"    <{mark}>{int(bool(attributes.get(mark)))}</{mark}>\n" for mark in MARKS)
        yield (
            f"  <object>\n    <name>{escape(names[entry['category_id']])}</name>\n    <pose>Unspecified</pose>\n{marks}"
            f"    <bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox>\n  </object>\n"
        )


def _round_ends(low: float, high: float, limit: int, notes: Notes) -> tuple[int, int]:
    """Round both ends to pixels, at least one apart."""
    first, last = round(low), round(high)
    if first == last:
        notes.add(WIDENED)
        first, last = (first, first + 1) if first < limit else (first - 1, first)
    return first, last


VOC = VocFormat()
