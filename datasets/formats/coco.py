"""COCO detection files: boxes, multi-part polygons, both kinds of RLE, crowds; category ids kept as they are.

A wrong reference or a number that is none makes the file unfit as a whole, with the first problems by JSON path:
such a file was written by a broken program, and guessing would hide it. A shape without area is only left out.
"""

from __future__ import annotations

import json
import mmap
from collections import Counter
from collections.abc import Container
from pathlib import Path, PurePosixPath
from typing import Any

from aiplatform.lib.wording import Message, Worded, message
from datasets import shapes
from datasets.formats.images import split_in
from datasets.formats.listing import Listing, version_paths
from datasets.formats.nearness import nearest
from datasets.formats.neutral import SHAPES, SPLITS, ClassInfo, ImageItem, Parsed, Shape, split_of
from datasets.formats.problems import Problems, natural
from datasets.shapes.kind import CocoItem
from datasets.shapes.outlines import is_number

MAX_JSON_BYTES = 2 << 30
MAX_EXTRA_BYTES = 16 << 10  # of fields beyond those that are understood, per image, object or class
_IMAGE_FIELDS = {"id", "file_name", "width", "height", "split"}
_SHAPE_FIELDS = {
    "id": int, "image_id": int, "category_id": int, "iscrowd": int,
    "segmentation": list | dict, "bbox": list, "area": float, "attributes": dict,
}  # fmt: skip
_KEYS = (b'"images"', b'"annotations"', b'"categories"')


def fits(listing: Listing) -> bool:
    """Whether a JSON file of the folder has COCO's three lists."""
    return bool(files(listing))


def files(listing: Listing) -> list[str]:
    """The COCO files to read: `instances*` where there are any; those named after a split first."""
    names = [name for name in listing.with_suffix(".json") if _looks_right(listing.root / name)]
    instances = [name for name in names if PurePosixPath(name).name.startswith("instances")]
    return sorted(instances or names, key=lambda name: (not _split_of_file(name), natural(name)))


def _looks_right(path: Path) -> bool:
    if not 0 < path.stat().st_size <= MAX_JSON_BYTES:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return all(data.find(key) >= 0 for key in _KEYS)


def _split_of_file(name: str) -> str:
    words = PurePosixPath(name).stem.replace("-", "_").split("_")
    return next((split for word in words if (split := split_of(word))), "")


def read(listing: Listing) -> Parsed:
    """All COCO files of the folder as one data set. Images that none of them lists are not annotated.

    Ids are kept. Where a file counts annotations or images from 0 they are moved up by one, because common
    scorers take id 0 for "no match"; where two files use the same ids the second file's are moved past the first's.
    """
    parsed = Parsed(format="coco", task=SHAPES)
    taken: dict[str, str] = {}
    reader = _Ids()
    many = len(files(listing)) > 1
    for name in files(listing):
        where = f"{name}: " if many else ""
        listing.tick()
        parsed.labels.add(name)
        try:
            data = _load(listing.root / name)
        except Worded as exc:
            parsed.problems.add(name, "unreadable", exc.worded, fatal=True)
            continue
        _File(listing, name, where, parsed, reader, taken).read(data)
    names = _names(parsed)
    for image in parsed.images:
        image.path = names[image.source]
    _add_unlisted(listing, parsed)
    return parsed


def _add_unlisted(listing: Listing, parsed: Parsed) -> None:
    """Images outside any file come along: nobody said what is on them."""
    listed = {image.source for image in parsed.images}
    taken = {image.path for image in parsed.images}
    first = parsed.images[0] if parsed.images else None
    shared = first.source.removesuffix(first.path) if first and first.source.endswith(first.path) else ""
    for source in sorted(set(listing.images) - listed, key=natural):
        path = source.removeprefix(shared)
        path = source if path in taken else path
        parsed.problems.add(source, "unlisted_image", message("report.unlisted_image"))
        parsed.images.append(ImageItem(source, path, split=split_in(source), annotated=False))


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            return json.load(file)
    except RecursionError:
        raise Worded(message("report.nested_json")) from None
    except UnicodeDecodeError:
        raise Worded(message("report.not_utf8")) from None
    except ValueError as exc:
        raise Worded(message("report.not_json", error=str(exc))) from None


def _names(parsed: Parsed) -> dict[str, str]:
    """Version paths: as the file names them where those are unique, else by folder."""
    named_paths = {image.source: image.path for image in parsed.images}
    if len(set(named_paths.values())) == len(named_paths):
        return named_paths
    return version_paths(list(named_paths))


class _Ids:
    """Keeps ids unique over several files."""

    def __init__(self) -> None:
        self.highest = {"images": 0, "annotations": 0}
        self.used: dict[str, set[int]] = {"images": set(), "annotations": set()}

    def shift(self, kind: str, ids: list[int]) -> int:
        """What to add to all `ids` of one file so that they count from 1 and clash with no earlier file."""
        if not ids:
            return 0
        shift = 1 - min(ids) if min(ids) < 1 else 0
        if self.used[kind] & {number + shift for number in ids}:
            shift = self.highest[kind] + 1 - min(ids)
        self.used[kind].update(number + shift for number in ids)
        self.highest[kind] = max(self.highest[kind], max(ids) + shift)
        return shift


class _File:
    """Reads one COCO file into `parsed`."""

    def __init__(
        self, listing: Listing, name: str, where: str, parsed: Parsed, ids: _Ids, taken: dict[str, str]
    ) -> None:
        self.listing, self.name, self.where = listing, name, where
        self.parsed, self.ids, self.taken = parsed, ids, taken
        self.problems: Problems = parsed.problems
        self.split = _split_of_file(name)
        self.near = str(PurePosixPath(name).parent).removeprefix(".")
        self.images: dict[int, ImageItem | None] = {}  # None: it cannot be used, its shapes go with it
        self.lost: Counter[int] = Counter()  # shapes of such images

    def read(self, data: Any) -> None:
        if not isinstance(data, dict) or not all(
            isinstance(data.get(k), list) for k in ("images", "annotations", "categories")
        ):
            self.refuse("", "not_coco", message("report.not_coco"))
            return
        self.read_categories(data["categories"])
        self.read_images(data["images"])
        self.read_annotations(data["annotations"])
        self.read_head(data)

    def read_head(self, data: dict[str, Any]) -> None:
        """What the file says about itself; of several files the first, with the licences of all."""
        head = self.parsed.head
        for key, kind in (("info", dict), ("licenses", list)):
            given = data.get(key)
            if (
                isinstance(given, kind)
                and given
                and not head.get(key)
                and (kept := self.further({key: given}, set(), key))
            ):
                head[key] = kept[key]

    def further(self, item: dict[str, Any], known: Container[str], path: str) -> dict[str, Any]:
        """Fields of an object beyond those that are understood, to be given back as they came."""
        kept = {key: value for key, value in item.items() if key not in known and value is not None}
        if not kept:
            return kept
        try:
            if len(json.dumps(kept, allow_nan=False)) <= MAX_EXTRA_BYTES:
                return kept
        except ValueError:
            pass
        self.drop(path, "extra_fields", message("report.extra_fields", names=", ".join(map(str, kept))[:80]))
        return {}

    def refuse(self, path: str, code: str, says: Message) -> None:
        self.problems.add(self.where + path, code, says, fatal=True)

    def drop(self, path: str, code: str, says: Message) -> None:
        self.problems.add(self.where + path, code, says)

    def read_categories(self, items: list[Any]) -> None:
        known = {info.id: info for info in self.parsed.classes}
        ids: set[int] = set()
        for index, item in enumerate(items):
            path = f"categories[{index}]"
            if not isinstance(item, dict) or not _is_int(item.get("id")):
                self.refuse(f"{path}.id", "bad_id", message("report.category_id"))
                continue
            name, number = item.get("name"), int(item["id"])
            if not isinstance(name, str) or not name.strip() or "\0" in name:
                self.refuse(f"{path}.name", "no_name", message("report.category_name"))
            elif number in ids:
                self.refuse(f"{path}.id", "duplicate_id", message("report.category_id_twice", id=number))
            elif number in known and known[number].name != name:
                said = message("report.unlike_category", id=number, name=known[number].name)
                self.refuse(f"{path}.name", "unlike_category", said)
            elif number not in known:
                extra = self.further(item, {"id", "name", "supercategory"}, path)
                self.parsed.classes.append(ClassInfo(number, name, str(item.get("supercategory") or ""), extra))
            ids.add(number)
        self.category_ids = ids

    def read_images(self, items: list[Any]) -> None:
        fine: list[tuple[int, dict[str, Any], str]] = []
        for index, item in enumerate(items):
            path = f"images[{index}]"
            if not isinstance(item, dict) or not _is_int(item.get("id")):
                self.refuse(f"{path}.id", "bad_id", message("report.image_id"))
                continue
            number, file_name = int(item["id"]), item.get("file_name")
            if number in self.images:
                self.refuse(f"{path}.id", "duplicate_id", message("report.image_id_twice", id=number))
                continue
            self.images[number] = None
            if not isinstance(file_name, str) or not _is_safe(file_name):
                self.refuse(f"{path}.file_name", "unsafe_name", message("report.unsafe_name"))
                continue
            fine.append((number, item, path))
        shift = self.ids.shift("images", [number for number, _item, _path in fine])
        mine: dict[str, ImageItem] = {}
        for number, item, path in fine:
            file_name = item["file_name"]
            found = self.listing.find_images(file_name, near=self.near, split=self.split)
            source = nearest(found, self.near) if found else None
            if len(found) > 1:
                said = message("report.several_images", count=len(found), name=file_name, image=source)
                self.drop(f"{path}.file_name", "several_images", said)
            if source is None:
                self.drop(f"{path}.file_name", "missing_image", message("report.missing_image", image=file_name))
            elif source in mine:
                said = message("report.image_listed_twice", image=file_name)
                self.drop(f"{path}.file_name", "duplicate_image", said)
                self.images[number] = mine[source]
            elif source in self.taken:
                said = message("report.image_taken", image=file_name, file=self.taken[source])
                self.drop(f"{path}.file_name", "duplicate_image", said)
            else:
                split = item.get("split") if item.get("split") in SPLITS else self.split or split_in(source)
                image = ImageItem(
                    source,
                    str(PurePosixPath(file_name.replace("\\", "/"))),
                    split=str(split),
                    width=_size(item.get("width")),
                    height=_size(item.get("height")),
                    id=number + shift,
                    extra=self.further(item, _IMAGE_FIELDS, path),
                )
                self.images[number] = mine[source] = image
                self.taken[source] = self.name
                self.parsed.images.append(image)

    def read_annotations(self, items: list[Any]) -> None:
        ids: set[int] = set()
        kept: list[tuple[ImageItem, Shape]] = []
        for index, item in enumerate(items):
            path = f"annotations[{index}]"
            if not isinstance(item, dict):
                self.refuse(path, "bad_annotation", message("report.bad_annotation"))
                continue
            number = item.get("id")
            if number is not None and not _is_int(number):
                self.refuse(f"{path}.id", "bad_id", message("report.annotation_id"))
                continue
            if number is not None and number in ids:
                self.refuse(f"{path}.id", "duplicate_id", message("report.annotation_id_twice", id=number))
                continue
            if number is not None:
                ids.add(number)
            if not _is_int(item.get("category_id")) or item["category_id"] not in self.category_ids:
                said = message("report.unknown_category", id=_short(item.get("category_id")))
                self.refuse(f"{path}.category_id", "unknown_category", said)
            elif not _is_int(item.get("image_id")) or item["image_id"] not in self.images:
                said = message("report.unknown_image", id=_short(item.get("image_id")))
                self.refuse(f"{path}.image_id", "unknown_image", said)
            else:
                image = self.images[item["image_id"]]
                shape = self.shape(item, path, image)
                if image is None:
                    self.lost[item["image_id"]] += 1
                elif shape:
                    kept.append((image, shape))
        for number, count in self.lost.items():
            said = message("report.image_id_lost", id=number)
            self.problems.add(f"{self.where}annotations", "lost_shapes", said, count=count)
        shift = self.ids.shift("annotations", sorted(ids))
        free = self.ids.highest["annotations"]
        for image, shape in kept:
            if shape.id is None:
                free += 1
                shape.id = free
                self.ids.used["annotations"].add(free)
            else:
                shape.id += shift
            image.shapes.append(shape)
        self.ids.highest["annotations"] = free

    def shape(self, item: dict[str, Any], path: str, image: ImageItem | None) -> Shape | None:
        """The annotation as a shape; None when it was refused or left out (and reported)."""
        bbox = item.get("bbox")
        if bbox is not None and (
            not isinstance(bbox, list) or len(bbox) not in {0, 4} or not all(map(is_number, bbox))
        ):
            self.refuse(f"{path}.bbox", "bad_box", message("report.bad_box"))
            return None
        if bbox and (bbox[2] < 0 or bbox[3] < 0):
            self.refuse(f"{path}.bbox", "negative_box", message("report.negative_box"))
            return None
        area = item.get("area")
        if area is not None and not is_number(area):
            self.refuse(f"{path}.area", "bad_area", message("report.bad_area"))
            return None
        given = item.get("attributes")
        attributes: dict[str, Any] = given if isinstance(given, dict) else {}
        source = CocoItem(item.get("segmentation"), bbox, area, attributes, image.path if image else "", item)
        reading = shapes.of_coco(source).read(source, _Report(self, path))
        if reading is None:
            return None
        return Shape(
            item["category_id"],
            reading.kind,
            reading.bbox,
            reading.segmentation,
            reading.area,
            iscrowd=1 if item.get("iscrowd") == 1 else 0,
            attributes=reading.attributes,
            id=item.get("id"),
            extra=self.further(item, _SHAPE_FIELDS, path),
        )


class _Report:
    """Passes on what a kind of shape says about one annotation."""

    def __init__(self, file: _File, path: str) -> None:
        self.file, self.path = file, path

    def refuse(self, place: str, code: str, says: Message) -> None:
        self.file.refuse(f"{self.path}.{place}", code, says)

    def drop(self, place: str, code: str, says: Message) -> None:
        self.file.drop(f"{self.path}.{place}", code, says)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53


def _is_safe(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return (
        bool(name)
        and "\0" not in name
        and ".." not in parts
        and bool(parts[0])
        and ":" not in parts[0]
        and len(name) < 1000
    )


def _size(value: Any) -> int | None:
    return int(value) if is_number(value) and value >= 1 else None


def _short(value: Any) -> str:
    return repr(value)[:40]
