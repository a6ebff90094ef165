"""Read the ground truth of a dataset version: splits, labels, boxes."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inference.kit.contracts.served_task import CLASSES, SHAPES
from inference.kit.model_io.spec import ModelClass
from inference.kit.samples.learned import key

UNSEEN = "unseen"
"""In place of a split: the images that the model did not learn from."""


class Unfit(Exception):
    """Model and data do not fit each other; the message says why."""


@dataclass(frozen=True)
class Box:
    """An annotated box, x1 y1 x2 y2 in pixels; answers inside a crowd box do not count as wrong."""

    class_id: int
    corners: tuple[float, float, float, float]
    crowd: bool = False


def has_area(corners: Sequence[float]) -> bool:
    """Whether x1 y1 x2 y2 is more than a line."""
    x1, y1, x2, y2 = corners
    return x2 > x1 and y2 > y1


@dataclass(frozen=True)
class Sample:
    """One image of the chosen split."""

    id: int  # COCO image id, or its place in the manifest from 1
    path: str  # relative to images/
    width: int
    height: int
    label: int | None = None
    boxes: Sequence[Box] = field(default_factory=tuple)
    split: str = ""

    @property
    def looks(self) -> list[tuple[float, float, float, float]]:
        """The boxes that a model which looks at boxes is shown, in the order of the annotations."""
        return [box.corners for box in self.boxes if not box.crowd and has_area(box.corners)]


@dataclass(frozen=True)
class Truth:
    """A split: its samples in the manifest's order, and the version's classes."""

    root: Path
    facts: dict[str, Any]
    task: str  # what the images carry: SHAPES or CLASSES
    classes: tuple[ModelClass, ...]
    samples: list[Sample]
    coco: dict[str, Any] | None  # annotations of exactly these samples
    trained_on: int = 0  # of them, those that the model learned from

    def image(self, sample: Sample) -> Path:
        return self.root / "images" / sample.path


def read(root: Path, split: str, learned: Set[str] = frozenset()) -> Truth:
    """Read the split of a version directory.

    Args:
        split: a split of the version; "" takes all images, `UNSEEN` all that are not among `learned`.
        learned: keys of the images that the model learned from, see `learned.key`.

    Raises:
        Unfit: the version has no labels, or no image in this split.
    """
    facts = json.loads((root / "dataset.json").read_text())
    task = facts.get("task", "none")
    if task not in (SHAPES, CLASSES):
        raise Unfit("This dataset version is not annotated, so nothing can be judged on it.")
    with (root / "manifest.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    selected = [
        (number, row)
        for number, row in enumerate(rows, 1)
        if (key(row) not in learned if split == UNSEEN else not split or row.get("split") == split)
    ]
    if not selected and split == UNSEEN:
        raise Unfit("The model learned from all images of this dataset version.")
    if not selected:
        raise Unfit(f"This dataset version has no images in the split “{split}”.")
    classes = tuple(ModelClass(int(c["id"]), str(c["name"])) for c in facts["classes"])
    if task == CLASSES:
        samples = [
            Sample(number, row["path"], row["width"], row["height"], row["label"], split=row.get("split") or "")
            for number, row in selected
            if row.get("label") is not None
        ]
        if not samples:
            raise Unfit("No image of this split has a label.")
        return Truth(root, facts, task, classes, samples, None, _count_trained(samples, selected, learned))
    coco = json.loads((root / "annotations.json").read_text())
    samples, own_coco = _boxed(coco, {row["path"]: row for _, row in selected})
    return Truth(root, facts, task, classes, samples, own_coco, _count_trained(samples, selected, learned))


def _count_trained(samples: Sequence[Sample], selected: Sequence[tuple[int, dict[str, Any]]], learned: Set[str]) -> int:
    """Return how many of the samples the model was trained on."""
    keys = {row["path"]: key(row) for _, row in selected}
    return sum(keys.get(sample.path) in learned for sample in samples)


def _boxed(coco: dict[str, Any], wanted: dict[str, Any]) -> tuple[list[Sample], dict[str, Any]]:
    images = {image["id"]: image for image in coco["images"] if image["file_name"] in wanted}
    boxes: dict[int, list[Box]] = {image_id: [] for image_id in images}
    annotations = []
    for annotation in coco["annotations"]:
        if annotation["image_id"] in images:
            x, y, w, h = annotation["bbox"]
            crowd = bool(annotation.get("iscrowd", 0))
            boxes[annotation["image_id"]].append(Box(annotation["category_id"], (x, y, x + w, y + h), crowd))
            annotations.append(annotation)
    samples = [
        Sample(
            image_id,
            image["file_name"],
            image["width"],
            image["height"],
            None,
            boxes[image_id],
            wanted[image["file_name"]].get("split") or "",
        )
        for image_id, image in images.items()
    ]
    coco_truth = {**coco, "images": list(images.values()), "annotations": annotations}
    return samples, coco_truth


def match_classes(
    model: Sequence[ModelClass], truth: Sequence[ModelClass], *, strangers: bool = False
) -> tuple[dict[int, int], list[str]]:
    """Map the model's class indices to the dataset's class ids by name, and report what did not fit.

    Args:
        strangers: classes the model does not know belong to what it is judged on.

    Raises:
        Unfit: not one name is shared.
    """
    exact = {c.name: c.id for c in truth}
    loose = {c.name.strip().lower(): c.id for c in truth}
    mapping: dict[int, int] = {}
    notes = []
    for index, model_class in enumerate(model):
        class_id = exact.get(model_class.name, loose.get(model_class.name.strip().lower()))
        if class_id is None:
            notes.append(
                f"The class “{model_class.name}” of the model is not in the dataset; its predictions are ignored."
            )
        else:
            mapping[index] = class_id
    if not mapping:
        raise Unfit("The model and the dataset have no class name in common.")
    missed = {c.id for c in truth} - set(mapping.values())
    notes += [f"The model does not have the class “{c.name}”." for c in truth if c.id in missed and not strangers]
    return mapping, notes
