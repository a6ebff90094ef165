"""The common form of data sets of every format: images, classes, shapes, problems. No database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from datasets.formats.problems import Problems
from datasets.shapes.box import BOX

# What the images of a version carry, as stored in `DatasetVersion.task` and in dataset.json.
NONE, SHAPES, CLASSES = "none", "detection", "classification"
SPLITS = ("train", "val", "test")
NO_SPLIT = "none"  # asks for the images without a split, where "" asks for all
_SPLIT_NAMES = {
    "train": "train", "training": "train", "trn": "train",
    "val": "val", "valid": "val", "validation": "val", "dev": "val",
    "test": "test", "testing": "test", "tst": "test",
}  # fmt: skip


def split_of(word: str) -> str:
    """ "train", "val" or "test" for the names people give them ("train2017" too); "" for any other word."""
    return _SPLIT_NAMES.get(word.casefold().rstrip("0123456789"), "")


@dataclass(slots=True)
class ClassInfo:
    """A class; `extra` is what its file says beyond that (keypoint names, skeleton), given back on export."""

    id: int
    name: str
    supercategory: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

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
        extra: further fields of the source file (keypoints), kept and given back as they came.
    """

    class_id: int
    kind: str
    bbox: tuple[float, float, float, float]
    segmentation: list[list[float]] | dict[str, Any]
    area: float
    iscrowd: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    id: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """What the database and the gallery keep: COCO's words plus `kind`."""
        return self.extra | {
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
        annotated: reviewed, with all of its objects drawn. With no shape it is checked and empty; False means
            that it was not reviewed, and is not used for training.
        stated: how many objects its annotation file states. Where none of them is used the image is not annotated,
            for it would be learned as background.
        exact: its shapes are the pixels of a mask, which fit an image of the same size only.
        relative: the numbers of its shapes are parts of its width and height, until its size is known.
        extra: further fields of the source file (licence, address), given back as they came.
    """

    source: str
    path: str
    split: str = ""
    width: int | None = None
    height: int | None = None
    label: int | None = None
    shapes: list[Shape] = field(default_factory=list)
    id: int | None = None
    annotated: bool = True
    relative: bool = False
    exact: bool = False
    stated: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Parsed:
    """A data set read from a folder, whatever its format was.

    Args:
        labels: files that were read for what they say about images: annotations, lists of classes and of splits.
        head: what a file says about itself ("info", "licenses"), given back on export.
    """

    format: str
    task: str  # what it carries: NONE, SHAPES or CLASSES
    images: list[ImageItem] = field(default_factory=list)
    classes: list[ClassInfo] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    labels: set[str] = field(default_factory=set)
    head: dict[str, Any] = field(default_factory=dict)

    def shapes(self) -> Iterator[Shape]:
        for image in self.images:
            yield from image.shapes

    def counts(self) -> dict[str, Any]:
        """Figures of the import report: images per split, shapes and labels per class."""
        labels = [image.label for image in self.images if image.label is not None]
        per_class: Counter[int] = Counter(shape.class_id for shape in self.shapes())
        per_class.update(labels)
        splits = Counter(image.split for image in self.images)
        kinds = Counter(shape.kind for shape in self.shapes())
        return {
            "images": len(self.images),
            "annotations": sum(kinds.values()) + len(labels),
            "kinds": dict(kinds),
            "empty_images": sum(image.annotated and not image.shapes and image.label is None for image in self.images),
            "unannotated_images": sum(not image.annotated for image in self.images),
            "splits": {name: splits[name] for name in (*SPLITS, "") if splits[name]},
            "classes": [info.as_dict() | {"count": per_class[info.id]} for info in self.classes],
        }


def box(class_id: int, x: float, y: float, width: float, height: float, **more: Any) -> Shape:
    """A rectangle as a shape, with its corners as the polygon every COCO reader understands."""
    made = BOX.to_reading(x, y, width, height, attributes=more.pop("attributes", {}))
    return Shape(class_id, made.kind, made.bbox, made.segmentation, made.area, attributes=made.attributes, **more)
