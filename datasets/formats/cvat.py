"""Read "CVAT for images 1.1": one XML file with an element per image and shape.

Source: docs.cvat.ai, "CVAT for images". Rotated boxes become polygons, ellipses polygons of 64 corners; masks are kept
as runs. Polylines, points, skeletons and cuboids have no kind of shape here and are skipped, each one reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

import numpy as np

from aiplatform.lib.wording import Worded, message
from datasets.formats.class_numbers import NamedClasses
from datasets.formats.images import unannotated
from datasets.formats.listing import Listing
from datasets.formats.neutral import SHAPES, ImageItem, Parsed, Shape, box, split_of
from datasets.formats.outline_shapes import ellipse, mask_shape, polygon, turned
from datasets.formats.problems import Problems, natural
from datasets.formats.voc import UnsafeXml, load_xml
from datasets.shapes.outlines import MAX_POINTS

MAX_XML_BYTES = 128 << 20
MAX_MASK_PX = 1 << 27
LOOKED_AT = 20
_UNKNOWN_KINDS = {"polyline", "points", "skeleton", "cuboid"}


def fits(listing: Listing) -> bool:
    """Whether an XML file has CVAT's root with images or tracks."""
    return any(_is_cvat(listing, name) for name in sorted(listing.with_suffix(".xml"), key=natural)[:LOOKED_AT])


def _is_cvat(listing: Listing, name: str) -> bool:
    with (listing.root / name).open("rb") as file:
        head = file.read(1 << 20).replace(b"\0", b"")
    return b"<annotations" in head and (b"<image " in head or b"<track " in head or b"<meta>" in head)


def read(listing: Listing) -> Parsed:
    """Read all images; unlisted ones are not annotated, those listed without a shape are checked and empty."""
    parsed = Parsed(format="cvat", task=SHAPES)
    items = unannotated(listing)
    parsed.images = list(items.values())
    named = NamedClasses()
    for name in sorted(listing.with_suffix(".xml"), key=natural):
        listing.tick()
        if not _is_cvat(listing, name):
            continue
        parsed.labels.add(name)
        try:
            root = load_xml(listing, name, parsed.problems, max_bytes=MAX_XML_BYTES)
        except UnsafeXml as exc:
            parsed.problems.add(name, "unsafe_xml", exc.worded)
            continue
        except (ElementTree.ParseError, ValueError, OSError) as exc:
            problem = exc.worded if isinstance(exc, Worded) else message("report.not_xml", error=str(exc))
            parsed.problems.add(name, "unreadable", problem)
            continue
        _File(listing, name, items, named, parsed.problems).read(root)
    named.number(parsed)
    return parsed


class _File:
    """Reads one file."""

    def __init__(
        self, listing: Listing, name: str, items: dict[str, ImageItem], named: NamedClasses, problems: Problems
    ) -> None:
        self.listing, self.name, self.items = listing, name, items
        self.named, self.problems = named, problems
        self.near = str(PurePosixPath(name).parent).removeprefix(".")

    def read(self, root: ElementTree.Element) -> None:
        for label in root.iterfind(".//meta//labels/label/name"):
            if label.text and label.text.strip():
                self.named.order[label.text.strip()] = None
        for track in root.iterfind("track"):
            boxes = sum(1 for _shape in track)
            where = f"{self.name}: track[{track.get('id', '')}]"
            self.problems.skip(where, "video_track", message("report.video_track"), count=max(1, boxes))
        for image in root.iterfind("image"):
            self.read_image(image)

    def read_image(self, node: ElementTree.Element) -> None:
        wanted = node.get("name", "")
        subset = split_of(node.get("subset", ""))
        where = f"{self.name}: {wanted}"
        missing = message("report.missing_image", image=wanted)
        source = self.listing.find_image(wanted, self.problems, where, missing, near=self.near, split=subset)
        if source is None:
            if count := sum(1 for _shape in node):
                self.problems.skip(where, "lost_shapes", message("report.image_lost"), count=count)
            return
        item = self.items[source]
        if item.annotated:
            self.problems.add(where, "duplicate_image", message("report.image_listed_twice", image=wanted))
        item.annotated = True
        item.stated += sum(shape.tag != "tag" for shape in node)
        item.split = subset or item.split
        item.width, item.height = _side(node.get("width")), _side(node.get("height"))
        for index, shape in enumerate(node):
            self.read_shape(shape, item, f"{where}: {shape.tag}[{index}]")

    def read_shape(self, node: ElementTree.Element, item: ImageItem, where: str) -> None:
        label = (node.get("label") or "").strip()
        if not label:
            self.problems.skip(where, "no_class", message("report.object_without_name"))
        elif node.tag == "tag":
            self.named.tag(item, label, where)
        elif node.tag in _UNKNOWN_KINDS or node.tag not in _READERS:
            self.problems.skip(where, "other_shape", message("report.other_shape", kind=node.tag[:20]))
        else:
            try:
                shape = _READERS[node.tag](node, item)
            except (ValueError, OverflowError):
                self.problems.skip(where, "bad_shape", message("report.bad_shape"))
                return
            if shape.area <= 0:
                self.problems.skip(where, "no_area", message("report.flat_shape", image=item.path))
                return
            if node.tag == "ellipse":
                self.problems.note(where, "ellipse", message("report.ellipse"))
            shape.attributes |= _attributes(node)
            self.named.add(item, label, shape)


def _number(node: ElementTree.Element, name: str) -> float:
    """A finite attribute.

    Raises:
        ValueError: it is missing or no number.
    """
    value = float(node.get(name, "nan"))
    if not math.isfinite(value) or abs(value) > 1e9:
        raise ValueError(name)
    return value


def _box(node: ElementTree.Element, _item: ImageItem) -> Shape:
    left, right = sorted((_number(node, "xtl"), _number(node, "xbr")))
    top, bottom = sorted((_number(node, "ytl"), _number(node, "ybr")))
    turn = float(node.get("rotation") or 0)
    if right <= left or bottom <= top:
        return box(0, left, top, 0, 0)
    if not turn % 360:
        return box(0, left, top, right - left, bottom - top)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return polygon(turned(corners, ((left + right) / 2, (top + bottom) / 2), turn))


def _polygon(node: ElementTree.Element, _item: ImageItem) -> Shape:
    pairs = [pair.split(",") for pair in node.get("points", "").strip("; ").split(";")]
    if not 3 <= len(pairs) <= MAX_POINTS or any(len(pair) != 2 for pair in pairs):
        raise ValueError("points")
    ring = [float(value) for pair in pairs for value in pair]
    if not all(math.isfinite(value) and abs(value) < 1e9 for value in ring):
        raise ValueError("points")
    return polygon(ring)


def _ellipse(node: ElementTree.Element, _item: ImageItem) -> Shape:
    x, y, across, down = (_number(node, name) for name in ("cx", "cy", "rx", "ry"))
    return ellipse((x, y), across, down, float(node.get("rotation") or 0))


def _mask(node: ElementTree.Element, item: ImageItem) -> Shape:
    """Runs of a rectangle, row by row, background first, placed on the image of the stated size."""
    left, top, width, height = (int(_number(node, name)) for name in ("left", "top", "width", "height"))
    runs = [int(run) for run in node.get("rle", "").split(",")]
    if not item.width or not item.height or item.width * item.height > MAX_MASK_PX:
        raise ValueError("size")
    if min(left, top, *runs) < 0 or not 0 < width * height <= MAX_MASK_PX or sum(runs) != width * height:
        raise ValueError("rle")
    part = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape((height, width))
    pixels = np.zeros((item.height, item.width), dtype=bool)
    part = part[: max(0, item.height - top), : max(0, item.width - left)]
    pixels[top : top + part.shape[0], left : left + part.shape[1]] = part
    return mask_shape(pixels)


_READERS: dict[str, Callable[[ElementTree.Element, ImageItem], Shape]] = {
    "box": _box,
    "polygon": _polygon,
    "ellipse": _ellipse,
    "mask": _mask,
}


def _side(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and int(text[:9]) > 0 else None


def _attributes(node: ElementTree.Element) -> dict[str, Any]:
    """Attributes of a shape as text or bool, "occluded", and its group."""
    return dict(_pairs(node))


def _pairs(node: ElementTree.Element) -> Iterator[tuple[str, Any]]:
    for attribute in node.iterfind("attribute"):
        if name := (attribute.get("name") or "").strip():
            value = (attribute.text or "").strip()
            name = "shape_" if name == "shape" else name  # which says what kind a COCO annotation is
            yield name[:100], {"true": True, "false": False}.get(value, value[:1000])
    if node.get("occluded") == "1":
        yield "occluded", True
    if (group := node.get("group_id") or "").isdecimal() and group != "0":
        yield "group_id", int(group[:9])
