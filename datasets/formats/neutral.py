"""The common form of data sets of every format: images, classes, shapes, problems. No Django."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from datasets.shapes.box import BOX

# What the images of a version carry, as it stands in `DatasetVersion.task` and in dataset.json.
NONE, SHAPES, CLASSES = "none", "detection", "classification"
SPLITS = ("train", "val", "test")
NO_SPLIT = "none"  # asks for the images without a split, where "" asks for all
_SPLIT_NAMES = {
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "dev": "val",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip
KEPT_PROBLEMS = 20_000  # more are counted, not listed


def split_of(word: str) -> str:
    """ "train", "val" or "test" for the names people give them ("train2017" too); "" for any other word."""
    return _SPLIT_NAMES.get(word.casefold().rstrip("0123456789"), "")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the data, described for its author.

    Args:
        path: the file, or the JSON path inside it ("annotations[12].bbox").
        code: stable word for scripts and counts.
        message: a sentence for people.
        fatal: the data set cannot be imported; otherwise the one item is left out or changed.
    """

    path: str
    code: str
    message: str
    fatal: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {"path": self.path, "code": self.code, "message": self.message, "fatal": self.fatal}


@dataclass(slots=True)
class Problems:
    """Collects problems: all are counted by code, the first `KEPT_PROBLEMS` are kept in full."""

    listed: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    fatal: int = 0

    def add(self, path: str, code: str, message: str, *, fatal: bool = False) -> None:
        self.counts[code] += 1
        self.fatal += fatal
        if len(self.listed) < KEPT_PROBLEMS:
            self.listed.append(Problem(path, code, message, fatal))

    def first(self, count: int) -> list[Problem]:
        """The first `count`, fatal ones before the others, then by path."""
        return sorted(self.listed, key=lambda problem: (not problem.fatal, natural(problem.path)))[:count]

    def __len__(self) -> int:
        return sum(self.counts.values())


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key under which "img10" comes after "img9"."""
    key: list[tuple[int, int, str]] = []
    word, digits = "", ""
    for char in text + "\0":
        if char.isdecimal() and char.isascii():
            if word:
                key.append((1, 0, word))
                word = ""
            digits += char
        else:
            if digits:
                key.append((0, int(digits[:4000]), ""))
                digits = ""
            word += char
    return [*key, (1, 0, word.rstrip("\0"))]


@dataclass(slots=True)
class ClassInfo:
    id: int
    name: str
    supercategory: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "supercategory": self.supercategory}


@dataclass(slots=True)
class Shape:
    """One object on an image, in pixels of the upright image.

    Args:
        kind: a name of datasets.shapes.
        bbox: x, y, width, height.
        segmentation: polygons as flat x, y lists, or an RLE object; for a box its four corners.
        area: as the file states it; computed where the file is silent.
        id: annotation id of the source file; None where the format has none.
    """

    class_id: int
    kind: str
    bbox: tuple[float, float, float, float]
    segmentation: list[list[float]] | dict[str, Any]
    area: float
    iscrowd: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    id: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """What the database and the gallery keep: COCO's words plus `kind`."""
        return {
            "id": self.id,
            "category_id": self.class_id,
            "kind": self.kind,
            "bbox": list(self.bbox),
            "segmentation": self.segmentation,
            "area": self.area,
            "iscrowd": self.iscrowd,
            "attributes": self.attributes,
        }


@dataclass(slots=True)
class ImageItem:
    """One image the data set names.

    Args:
        source: path of the file below the source folder.
        path: unique name in the version, below `images/`.
        width, height: what the annotation file claims; None where it does not.
        label: class id of a classified image.
        id: image id of the source file (COCO); None where the format has none.
    """

    source: str
    path: str
    split: str = ""
    width: int | None = None
    height: int | None = None
    label: int | None = None
    shapes: list[Shape] = field(default_factory=list)
    id: int | None = None


@dataclass(slots=True)
class Parsed:
    """A data set read from a folder, whatever its format was."""

    format: str
    task: str  # what it carries: NONE, SHAPES or CLASSES
    images: list[ImageItem] = field(default_factory=list)
    classes: list[ClassInfo] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)

    def shapes(self) -> Iterator[Shape]:
        for image in self.images:
            yield from image.shapes

    def counts(self) -> dict[str, Any]:
        """Figures of the import report: images per split, shapes per class."""
        per_class: Counter[int] = Counter(shape.class_id for shape in self.shapes())
        per_class.update(image.label for image in self.images if image.label is not None)
        splits = Counter(image.split for image in self.images)
        kinds = Counter(shape.kind for shape in self.shapes())
        return {
            "images": len(self.images),
            "annotations": sum(kinds.values()),
            "kinds": dict(kinds),
            "empty_images": sum(not image.shapes and image.label is None for image in self.images),
            "splits": {name: splits[name] for name in (*SPLITS, "") if splits[name]},
            "classes": [info.as_dict() | {"count": per_class[info.id]} for info in self.classes],
        }


def box(class_id: int, x: float, y: float, width: float, height: float, **more: Any) -> Shape:
    """A rectangle as a shape, with its corners as the polygon every COCO reader understands."""
    made = BOX.of(x, y, width, height, attributes=more.pop("attributes", {}))
    return Shape(class_id, made.kind, made.bbox, made.segmentation, made.area, attributes=made.attributes, **more)
