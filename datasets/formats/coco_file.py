"""Read one COCO detection file: boxes, multi-part polygons, both kinds of RLE, crowds; ids kept as they are.

A fault costs the object that has it, reported by JSON path. What refers to an id that stands for two things is left
out too, because any choice would be a guess.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from aiplatform.lib.wording import Message, message
from datasets import shapes
from datasets.formats import image_names
from datasets.formats.images import split_in
from datasets.formats.listing import Listing
from datasets.formats.neutral import SPLITS, ClassInfo, ImageItem, Parsed, Shape
from datasets.formats.problems import Problems
from datasets.shapes.box import BOX
from datasets.shapes.kind import CocoItem
from datasets.shapes.outlines import is_number

MAX_EXTRA_BYTES = 16 << 10  # of fields beyond those that are understood, per image, object or class
MAX_NAME_LENGTH = 1000
_IMAGE_FIELDS = {"id", "file_name", "width", "height", "split"}
SHAPE_FIELDS = {
    "id": int, "image_id": int, "category_id": int, "iscrowd": int,
    "segmentation": list | dict, "bbox": list, "area": float, "attributes": dict,
}  # fmt: skip
Key = int | str


class Ids:
    """Keeps ids of images and annotations unique over several files."""

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

    def next(self, kind: str) -> int:
        """An id that nothing has."""
        self.highest[kind] += 1
        self.used[kind].add(self.highest[kind])
        return self.highest[kind]


class CocoFile:
    """Reads one file into `parsed`.

    Args:
        where: put before JSON paths where there are several files.
        taken: image → the file that listed it, over all files.
        split: that the file's name states; "" for none.
    """

    def __init__(
        self, listing: Listing, name: str, where: str, parsed: Parsed, ids: Ids, taken: dict[str, str], *, split: str
    ) -> None:
        self.listing, self.name, self.where = listing, name, where
        self.parsed, self.ids, self.taken = parsed, ids, taken
        self.problems: Problems = parsed.problems
        self.split = split
        self.near = str(PurePosixPath(name).parent).removeprefix(".")
        self.categories: dict[Key, int | None] = {}  # None: several classes have the id
        self.images: dict[Key, ImageItem | None] = {}  # None: it cannot be used, its shapes go with it
        self.lost: Counter[Key] = Counter()  # shapes of such images

    def read(self, data: Any) -> None:
        """Take what the JSON holds; what cannot be used is reported."""
        if isinstance(data, dict) and "categories" not in data:
            data["categories"] = _categories_used(data.get("annotations"))
        lists = ("images", "annotations", "categories")
        if not isinstance(data, dict) or not all(isinstance(data.get(name), list) for name in lists):
            self.report("", "not_coco", message("report.not_coco"))
            return
        self.read_categories(data["categories"])
        self.read_images(data["images"])
        self.read_annotations(data["annotations"])
        self.read_head(data)

    def report(self, path: str, code: str, says: Message) -> None:
        self.problems.add(self.where + path, code, says)

    def skip(self, path: str, code: str, says: Message) -> None:
        self.problems.skip(self.where + path, code, says)

    def read_head(self, data: dict[str, Any]) -> None:
        """Keep the file's info; of several files the first, with the licences of all."""
        head = self.parsed.head
        for key, kind in (("info", dict), ("licenses", list)):
            value = data.get(key)
            if isinstance(value, kind) and value and not head.get(key):
                head |= self.extra_fields({key: value}, set(), key)

    def extra_fields(self, item: dict[str, Any], read_fields: Container[str], path: str) -> dict[str, Any]:
        """Return fields of an object beyond those that are read, to be exported unchanged."""
        extra = {key: value for key, value in item.items() if key not in read_fields and value is not None}
        if not extra:
            return extra
        try:
            if len(json.dumps(extra, allow_nan=False)) <= MAX_EXTRA_BYTES:
                return extra
        except ValueError:
            pass
        self.report(path, "extra_fields", message("report.extra_fields", names=", ".join(map(str, extra))[:80]))
        return {}

    def read_categories(self, items: list[Any]) -> None:
        """Map the file's category ids to classes; a class that an earlier file has is match by its name."""
        before = {info.name: info.id for info in self.parsed.classes}
        classes = {info.id: info for info in self.parsed.classes}
        names: dict[Key, str] = {}
        for index, item in enumerate(items):
            path = f"categories[{index}]"
            key = _key(item.get("id")) if isinstance(item, dict) else None
            if key is None:
                self.report(f"{path}.id", "bad_id", message("report.category_id"))
                continue
            name = item.get("name")
            if not isinstance(name, str) or not name.strip() or "\0" in name:
                name = str(key)
                self.report(f"{path}.name", "unnamed_class", message("report.unnamed_class", index=name))
            if key in names:
                if names[key] != name:
                    self.report(f"{path}.id", "duplicate_id", message("report.category_id_twice", id=key))
                    self.categories[key] = None
                continue
            names[key] = name
            number = self._class_id(key, name, before, classes)
            if number != key and isinstance(key, int):
                text = message("report.renumbered_class", name=name, id=key, number=number)
                self.problems.note(self.where + path, "renumbered_class", text)
            self.categories[key] = number
            if number not in classes:
                extra = self.extra_fields(item, {"id", "name", "supercategory"}, path)
                info = ClassInfo(number, name, str(item.get("supercategory") or ""), extra)
                self.parsed.classes.append(info)
                classes[number] = info

    def _class_id(self, key: Key, name: str, before: dict[str, int], classes: dict[int, ClassInfo]) -> int:
        if isinstance(key, int) and key in classes and classes[key].name == name:
            return key
        if name in before:
            return before[name]
        if isinstance(key, int) and key not in classes:
            return key
        return max([0, *classes, *(other for other in self.categories if isinstance(other, int))]) + 1

    def read_images(self, items: list[Any]) -> None:
        fine: list[tuple[Key, dict[str, Any], str]] = []
        names: dict[Key, str] = {}
        for index, item in enumerate(items):
            path = f"images[{index}]"
            key = _key(item.get("id")) if isinstance(item, dict) else None
            if key is None:
                self.report(f"{path}.id", "bad_id", message("report.image_id"))
                continue
            name = item.get("file_name")
            if not isinstance(name, str) or not name.strip() or "\0" in name or len(name) > MAX_NAME_LENGTH:
                self.report(f"{path}.file_name", "bad_file_name", message("report.bad_file_name"))
                self.images.setdefault(key, None)
                continue
            if key in names:
                if names[key] == name:
                    self.report(f"{path}.id", "duplicate_image", message("report.image_listed_twice", image=name))
                else:
                    self.report(f"{path}.id", "duplicate_id", message("report.image_id_twice", id=key))
                    names[key] = ""  # differs from every name
                continue
            names[key] = name
            fine.append((key, item, path))
        shift = self.ids.shift("images", [key for key, _item, _path in fine if isinstance(key, int)])
        mine: dict[str, ImageItem] = {}
        for key, item, path in fine:
            image = self._image(item, path, mine)
            self.images[key] = image if names[key] else None
            if image is None:
                continue
            if not names[key]:
                image.annotated = False
            if image.id is None:
                image.id = key + shift if isinstance(key, int) else self.ids.next("images")

    def _image(self, item: dict[str, Any], path: str, mine: dict[str, ImageItem]) -> ImageItem | None:
        """The image that an entry names, new or listed before; None where it is not there or another file's."""
        name, path_of_name = item["file_name"], f"{path}.file_name"
        match = self.listing.match(name, near=self.near, split=self.split)
        match.report(self.problems, self.where + path_of_name, name, message("report.missing_image", image=name))
        source = match.source
        if source is None:
            return None
        if source in mine:
            self.report(path_of_name, "duplicate_image", message("report.image_listed_twice", image=name))
            return mine[source]
        if source in self.taken:
            text = message("report.image_taken", image=name, file=self.taken[source])
            self.report(path_of_name, "duplicate_image", text)
            return None
        split = item.get("split") if item.get("split") in SPLITS else self.split or split_in(source)
        shared = image_names.longest_suffix([source], image_names.plain(name))[1]
        mine[source] = ImageItem(
            source,
            "/".join(source.split("/")[-shared:]),
            split=str(split),
            width=_size(item.get("width")),
            height=_size(item.get("height")),
            extra=self.extra_fields(item, _IMAGE_FIELDS, path),
        )
        self.taken[source] = self.name
        self.parsed.images.append(mine[source])
        return mine[source]

    def read_annotations(self, items: list[Any]) -> None:
        first: dict[Key, int] = {}  # id → index of the annotation that has it
        read: list[tuple[ImageItem, Shape]] = []
        for index, item in enumerate(items):
            path = f"annotations[{index}]"
            if not isinstance(item, dict):
                self.skip(path, "bad_annotation", message("report.bad_annotation"))
                continue
            of_image = _key(item.get("image_id"))
            if of_image is not None and (listed := self.images.get(of_image)):
                listed.stated += 1
            key = _key(item.get("id"))
            if key is not None and key in first and items[first[key]] == item:
                self.report(f"{path}.id", "same_annotation", message("report.same_annotation", id=key))
                continue
            category = self._category_of(item, path)
            image = self._image_of(item, path) if category is not None else None
            if category is None or image is None:
                continue
            if shape := self.shape(item, path, image, category):
                shape.id = self._own_id(key, path, taken=key in first, stated=item.get("id"))
                read.append((image, shape))
            if key is not None:
                first.setdefault(key, index)
        for key, count in self.lost.items():
            text = message("report.image_id_lost", id=key)
            self.problems.skip(f"{self.where}annotations", "lost_shapes", text, count=count)
        shift = self.ids.shift("annotations", [shape.id for _image, shape in read if shape.id is not None])
        for image, shape in read:
            shape.id = self.ids.next("annotations") if shape.id is None else shape.id + shift
            image.shapes.append(shape)

    def _own_id(self, key: Key | None, path: str, *, taken: bool, stated: Any) -> int | None:
        """Return the annotation's id; None if it gets a new one, which is noted."""
        if isinstance(key, int) and not taken:
            return key
        if stated is not None:
            self.problems.note(
                f"{self.where}{path}.id", "new_id", message("report.new_annotation_id", id=_short(stated))
            )
        return None

    def _category_of(self, item: dict[str, Any], path: str) -> int | None:
        key = _key(item.get("category_id"))
        if key is None or key not in self.categories:
            text = message("report.unknown_category", id=_short(item.get("category_id")))
            self.skip(f"{path}.category_id", "unknown_category", text)
            return None
        if (category := self.categories[key]) is None:
            self.skip(f"{path}.category_id", "ambiguous_id", message("report.ambiguous_category", id=key))
        return category

    def _image_of(self, item: dict[str, Any], path: str) -> ImageItem | None:
        key = _key(item.get("image_id"))
        if key is None or key not in self.images:
            text = message("report.unknown_image", id=_short(item.get("image_id")))
            self.skip(f"{path}.image_id", "unknown_image", text)
            return None
        if (image := self.images[key]) is None:
            self.lost[key] += 1
        return image

    def shape(self, item: dict[str, Any], path: str, image: ImageItem, category: int) -> Shape | None:
        """Return the annotation as a shape; None if it was left out, and reported."""
        bbox, area = item.get("bbox"), item.get("area")
        if bbox is not None and (
            not isinstance(bbox, list) or len(bbox) not in {0, 4} or not all(map(is_number, bbox))
        ):
            self.skip(f"{path}.bbox", "bad_box", message("report.bad_box"))
            return None
        if bbox and (bbox[2] < 0 or bbox[3] < 0):
            self.skip(f"{path}.bbox", "negative_box", message("report.negative_box"))
            return None
        if area is not None and not is_number(area):
            self.report(f"{path}.area", "bad_area", message("report.bad_area"))
            area = None
        stated = item.get("attributes")
        attributes: dict[str, Any] = stated if isinstance(stated, dict) else {}
        source = CocoItem(_segmentation(item.get("segmentation")), bbox, area, attributes, image.path, item)
        faults = _Faults()
        reading = shapes.of_coco(source).read(source, faults)
        faults.report_to(self, path, skipped=reading is None)
        if reading is None:
            return None
        stored = dict(reading.attributes)
        own = stored.get("shape", BOX.name)
        if reading.kind == BOX.name and own != BOX.name:  # an attribute of the user's, where ours says what is a box
            stored |= {"shape": BOX.name, "shape_": own}
        return Shape(
            category,
            reading.kind,
            reading.bbox,
            reading.segmentation,
            reading.area,
            iscrowd=1 if item.get("iscrowd") == 1 else 0,
            attributes=stored,
            extra=self.extra_fields(item, SHAPE_FIELDS, path),
        )


@dataclass(slots=True)
class _Faults:
    """What a kind of shape reports of one annotation, until it is known whether anything of it is left."""

    listed: list[tuple[str, str, Message]] = field(default_factory=list)

    def drop(self, field_path: str, code: str, says: Message) -> None:
        self.listed.append((field_path, code, says))

    refuse = drop

    def report_to(self, file: CocoFile, path: str, *, skipped: bool) -> None:
        """Report all of it; the object itself is counted once, with the last fault, which was decisive."""
        for at, (field_path, code, says) in enumerate(self.listed, 1):
            report = file.skip if skipped and at == len(self.listed) else file.report
            report(f"{path}.{field_path}", code, says)


def _key(value: Any) -> Key | None:
    """An id as it is compared: a whole number in whatever form, else a text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdecimal() and len(text) <= 15:
            return int(text)
        return text if 0 < len(text) <= MAX_NAME_LENGTH else None
    if isinstance(value, int) and abs(value) >= 1 << 53:  # a hash, too long for scripts and browsers
        return str(value)
    return value if isinstance(value, int) else None


def _categories_used(annotations: Any) -> list[dict[str, Any]]:
    """Categories without a name, for a file that has none: one for each id its annotations have."""
    items = annotations if isinstance(annotations, list) else []
    keys = {_key(item.get("category_id")) for item in items if isinstance(item, dict)} - {None}
    return [{"id": key} for key in sorted(keys, key=lambda key: (isinstance(key, str), key))]


def _segmentation(segmentation: Any) -> Any:
    """Return polygons as COCO defines them, also if a script wrote one polygon only or its corners as pairs."""
    if not isinstance(segmentation, list) or not segmentation:
        return segmentation
    if all(map(is_number, segmentation)):
        return [segmentation]
    return [_flat(ring) for ring in segmentation]


def _flat(ring: Any) -> Any:
    pairs = isinstance(ring, list) and ring and all(isinstance(point, list) and len(point) == 2 for point in ring)
    return [value for point in ring for value in point] if pairs else ring


def _size(value: Any) -> int | None:
    return int(value) if is_number(value) and value >= 1 else None


def _short(value: Any) -> str:
    return repr(value)[:40]
