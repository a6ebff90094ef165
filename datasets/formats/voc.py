"""Read Pascal VOC: one XML file per image, splits from ImageSets/Main. XML entities are refused."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from aiplatform.lib.wording import Worded, message
from datasets.formats.file_kinds import IMAGE_SUFFIXES
from datasets.formats.images import split_in
from datasets.formats.listing import Listing, version_paths
from datasets.formats.neutral import SHAPES, SPLITS, ClassInfo, ImageItem, Parsed, Shape, box, split_of
from datasets.formats.outline_shapes import polygon
from datasets.formats.problems import Problems, natural
from datasets.shapes.outlines import MAX_POINTS
from datasets.shapes.polygon import POLYGON

MAX_XML_BYTES = 16 << 20
_DECLARED = re.compile(
    rb"""(?:\xef\xbb\xbf)?\s{0,20}<\?xml[^>]{0,100}?encoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._-]{1,40})"""
)


class UnsafeXml(Worded):
    """The file declares a document type or entities; no annotation needs them."""


def fits(listing: Listing) -> bool:
    """Return whether the first XML file next to images is a VOC annotation."""
    for name in listing.with_suffix(".xml")[:20]:
        try:
            if load_xml(listing, name).tag == "annotation":
                return True
        except UnsafeXml:
            return True  # read() will name it
        except (ElementTree.ParseError, ValueError, OSError):
            continue
    return False


def read(listing: Listing) -> Parsed:
    """Read all annotations and images; images without a file are not annotated, those with an empty one are.

    Class ids count from 1 in natural order of the names.

    Zero-area boxes and unreadable files are left out and reported.
    """
    parsed = Parsed(format="voc", task=SHAPES)
    problems = parsed.problems
    splits = _splits(listing, parsed)
    annotations: dict[str, tuple[ElementTree.Element, str]] = {}
    for name in sorted(listing.with_suffix(".xml"), key=natural):
        listing.tick()
        try:
            root = load_xml(listing, name, problems)
        except UnsafeXml as exc:
            parsed.labels.add(name)
            problems.add(name, "unsafe_xml", exc.worded)
            continue
        except (ElementTree.ParseError, ValueError, OSError) as exc:
            parsed.labels.add(name)
            problem = exc.worded if isinstance(exc, Worded) else message("report.not_xml", error=str(exc))
            problems.add(name, "unreadable", problem)
            continue
        if root.tag != "annotation":
            continue
        parsed.labels.add(name)
        source = _image_of(listing, name, root, problems)
        if source is None:
            _count_lost(name, root, problems)
        elif source in annotations:
            problems.add(name, "duplicate_image", message("report.annotated_twice", file=annotations[source][1]))
            _count_lost(name, root, problems)
        else:
            annotations[source] = (root, name)
    classes = sorted(
        {_text(obj, "name") for root, _ in annotations.values() for obj in root.iter("object")} - {""}, key=natural
    )
    ids = {name: number for number, name in enumerate(classes, 1)}
    parsed.classes = [ClassInfo(number, name) for name, number in ids.items()]
    names = version_paths(listing.images)
    for source in sorted(listing.images, key=natural):
        split = splits.get(PurePosixPath(source).stem) or split_in(source)
        image = ImageItem(source, names[source], split=split, annotated=source in annotations)
        if source in annotations:
            root, xml = annotations[source]
            image.width, image.height = _size(root)
            image.stated = sum(1 for _object in root.iter("object"))
            image.shapes = _shapes(root, xml, ids, image, problems)
        parsed.images.append(image)
    return parsed


def _count_lost(name: str, root: ElementTree.Element, problems: Problems) -> None:
    count = sum(1 for _object in root.iter("object"))
    if count:
        problems.skip(name, "lost_shapes", message("report.file_lost"), count=count)


def load_xml(
    listing: Listing, name: str, problems: Problems | None = None, *, max_bytes: int = MAX_XML_BYTES
) -> ElementTree.Element:
    """Parse a small XML file that may not declare anything but its encoding.

    Raises:
        UnsafeXml: it has a DOCTYPE or an entity.
        ValueError: larger than `max_bytes`, in an unknown encoding, or not well formed.
    """
    path = listing.root / name
    if path.stat().st_size > max_bytes:
        raise Worded(message("report.file_too_large", most_mib=max_bytes >> 20))
    data = path.read_bytes()
    head = _DECLARED.match(data[:200])
    # A parser reads few encodings itself; a decoded text it reads in any, whatever the declaration says.
    text = listing.decode(name, data, problems, declared=head[1].decode() if head else "")
    guard = expat.ParserCreate()

    def refuse(*_args: object) -> int:
        raise UnsafeXml(message("report.unsafe_xml"))

    guard.StartDoctypeDeclHandler = refuse
    guard.EntityDeclHandler = refuse
    guard.ExternalEntityRefHandler = refuse
    try:
        guard.Parse(text, True)
    except expat.ExpatError as exc:
        raise ValueError(str(exc)) from None
    return ElementTree.fromstring(text)  # noqa: S314 - guarded above


def _splits(listing: Listing, parsed: Parsed) -> dict[str, str]:
    """Map image stems to splits by ImageSets/Main/{train,val,test}.txt; the first list that names an image wins."""
    problems = parsed.problems
    result: dict[str, str] = {}
    stems = {PurePosixPath(path).stem for path in listing.images}
    for name in sorted(listing.with_suffix(".txt"), key=_train_first):
        path = PurePosixPath(name)
        split = split_of(path.stem)
        if "imagesets" not in name.casefold():
            continue
        parsed.labels.add(name)
        if not split or ("main" not in name.casefold() and f"{path.parent.parent}/Main/{path.name}" in listing.files):
            continue  # lists of a class or of segmentation, next to those of detection
        for number, line in enumerate(_list(listing, name, problems), 1):
            stem = _listed_stem(line.strip(), stems)
            if not stem:
                continue
            if stem not in stems:
                problems.add(f"{name}:{number}", "missing_image", message("report.missing_listed_image", image=stem))
            elif result.setdefault(stem, split) != split:
                text = message("report.two_splits", image=stem, split=result[stem])
                problems.add(f"{name}:{number}", "two_splits", text)
    return result


def _listed_stem(line: str, stems: set[str]) -> str:
    """Return the image that a line of a list names, with or without its suffix, or before a mark of 1, 0 or -1."""
    for name in (line, *line.split()[:1]):
        bare = PurePosixPath(name).stem if PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES else name
        match = next((stem for stem in (name, bare) if stem in stems), "")
        if match:
            return match
    return line.split(maxsplit=1)[0] if line else ""


def _list(listing: Listing, name: str, problems: Problems) -> list[str]:
    try:
        return listing.text(name, problems, max_bytes=MAX_XML_BYTES).splitlines()
    except Worded as exc:
        problems.add(name, "unreadable", exc.worded)
        return []


def _train_first(name: str) -> tuple[int, str]:
    split = split_of(PurePosixPath(name).stem)
    return SPLITS.index(split) if split else 9, name


def _image_of(listing: Listing, name: str, root: ElementTree.Element, problems: Problems) -> str | None:
    near = str(PurePosixPath(name).parent)
    stem = PurePosixPath(name).stem
    same = listing.find_stem(stem)
    if len(same) > 1:  # the same name in several folders: the one next to this file's folder
        parents = defaultdict(list)
        for path in same:
            parents[str(PurePosixPath(path).parent.parent)].append(path)
        same = parents.get(str(PurePosixPath(near).parent), same)
        same = [path for path in same if str(PurePosixPath(path).parent) == near] or same
    wanted, near = _text(root, "filename") or stem, near.removeprefix(".")
    if len(same) == 1:
        other = listing.match(wanted, near=near).source
        if other not in {None, same[0]}:
            problems.add(name, "other_filename", message("report.other_filename", name=wanted, image=same[0]))
        return same[0]
    missing = message("report.missing_own_image", image=wanted)
    return listing.find_image(wanted, problems, name, missing, near=near)


def _size(root: ElementTree.Element) -> tuple[int | None, int | None]:
    size = root.find("size")
    if size is None:
        return None, None
    try:
        width, height = int(float(_text(size, "width"))), int(float(_text(size, "height")))
    except (ValueError, OverflowError):
        return None, None
    return (width, height) if width > 0 and height > 0 else (None, None)


def _shapes(
    root: ElementTree.Element, xml: str, ids: dict[str, int], image: ImageItem, problems: Problems
) -> list[Shape]:
    shapes = []
    for index, obj in enumerate(root.iter("object")):
        where = f"{xml}: object[{index}]"
        label = _text(obj, "name")
        if not label:
            problems.skip(where, "no_class", message("report.object_without_name"))
            continue
        marks = _attributes(obj)
        if further := len(obj.findall("part")) + max(0, len(obj.findall("bndbox")) - 1):
            problems.skip(where, "other_shape", message("report.further_boxes"), count=further)
        if ring := _ring(obj.find(POLYGON.name)):
            shape = polygon(ring)
            if shape.area > 0:
                shape.class_id, shape.attributes = ids[label], marks
                shapes.append(shape)
                continue
        bounds = obj.find("bndbox")
        try:
            sides = [float(_text(bounds, side)) for side in ("xmin", "ymin", "xmax", "ymax")]
        except (ValueError, AttributeError):
            sides = [math.nan]
        if bounds is None or not all(map(math.isfinite, sides)):
            problems.skip(where, "bad_box", message("report.object_without_box"))
            continue
        left, right = sorted(sides[::2])  # some tools write the corner where drawing began first
        top, bottom = sorted(sides[1::2])
        if right <= left or bottom <= top:
            problems.skip(
                where,
                "degenerate_box",
                message(
                    "report.flat_object",
                    image=image.path,
                    label=label,
                    left=f"{left:g}",
                    top=f"{top:g}",
                    right=f"{right:g}",
                    bottom=f"{bottom:g}",
                ),
            )
            continue
        shapes.append(box(ids[label], left, top, right - left, bottom - top, attributes=marks))
    return shapes


def _attributes(obj: ElementTree.Element) -> dict[str, Any]:
    """Return marks, the pose, and attributes as CVAT writes them; "shape" states the kind of a COCO annotation."""
    attributes: dict[str, Any] = {
        mark: True for mark in ("difficult", "truncated", "occluded") if _text(obj, mark) == "1"
    }
    pose = _text(obj, "pose")
    if pose and pose.casefold() != "unspecified":
        attributes["pose"] = pose[:100]
    for attribute in obj.iterfind("attributes/attribute"):
        if name := _text(attribute, "name")[:100]:
            attributes["shape_" if name == "shape" else name] = _text(attribute, "value")[:1000]
    return attributes


def _ring(node: ElementTree.Element | None) -> list[float]:
    """The corners of a polygon, as x1, y1, x2 … or as points of x and y; nothing where one cannot be read."""
    if node is None:
        return []
    points = [(_text(point, "x"), _text(point, "y")) for point in node.iterfind("pt")]
    points = points or [(_text(node, f"x{n}"), _text(node, f"y{n}")) for n in range(1, len(node) // 2 + 1)]
    try:
        ring = [float(value) for point in points for value in point]
    except ValueError:
        return []
    return ring if 6 <= len(ring) <= 2 * MAX_POINTS and all(map(math.isfinite, ring)) else []


def _text(node: ElementTree.Element | None, tag: str) -> str:
    child = node.find(tag) if node is not None else None
    return (child.text or "").strip() if child is not None else ""
