"""Read a dataset version for a training: its images, splits and annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import groups
from .run import Refused

HELD_OUT = 10  # per cent, where no split is meant for scoring


@dataclass(frozen=True)
class Image:
    """One line of manifest.jsonl; sizes are pixels as people see the image (EXIF-upright)."""

    path: str
    sha256: str
    width: int
    height: int
    split: str
    label: int | None


@dataclass(frozen=True)
class Version:
    """A dataset version's folder, read."""

    folder: Path
    name: str
    classes: list[dict[str, Any]]  # {"id", "name"}, in the order of their ids
    images: list[Image]

    @property
    def class_index(self) -> dict[int, int]:
        """Class id → 0..C-1."""
        return {int(entry["id"]): index for index, entry in enumerate(self.classes)}


def read(folder: Path) -> Version:
    """Read dataset.json and manifest.jsonl.

    Raises:
        Refused: no dataset there, no images in it, or no classes.
    """
    try:
        metadata = json.loads((folder / "dataset.json").read_text())
        lines = (folder / "manifest.jsonl").read_text().splitlines()
    except OSError as error:
        raise Refused(f"There is no dataset version at {folder}: {error.strerror}.") from error
    images = [_image(json.loads(line)) for line in lines if line.strip()]
    classes = sorted(metadata.get("classes") or [], key=lambda entry: int(entry["id"]))
    if not images:
        raise Refused(f"The dataset {metadata.get('name', '')} has no images.")
    if not classes:
        raise Refused(f"The dataset {metadata.get('name', '')} has no classes yet. Annotate it, then train.")
    return Version(folder, str(metadata.get("name", "")), classes, images)


def _image(line: dict[str, Any]) -> Image:
    label = line.get("label")
    return Image(
        path=line["path"],
        sha256=line.get("sha256", ""),
        width=int(line["width"]),
        height=int(line["height"]),
        split=line.get("split") or "",
        label=None if label is None else int(label),
    )


def split(version: Version, usable: Iterable[int], params: Mapping[str, Any]) -> tuple[list[int], list[int], str]:
    """Choose rows to learn from and rows to score on.

    The wanted split is taken if it exists and is not learned from, then `test`, then a tenth of the images to
    learn from, chosen by their path and therefore the same every time. With `folds`, what is scored on is one of so
    many parts of the images to learn from, whatever other splits there are. Images of one group (`group_by`, see
    groups.py) are not divided by either.

    Args:
        usable: rows that carry what the task needs.
        params: train_splits, names separated by commas, eval_split, and where a preset has them folds, fold, group_by.

    Returns:
        rows to learn from, rows to score on, and the name of what is scored on.

    Raises:
        Refused: nothing to learn from, or nothing to score on.
    """
    train, evaluate = params["train_splits"], params["eval_split"]
    names = {name.strip() for name in train.split(",") if name.strip()}
    rows = list(usable)
    if not rows:
        raise Refused(f"No image of {version.name or 'the dataset'} is annotated. Annotate some, then train.")
    learn = [row for row in rows if version.images[row].split in names]
    if not learn and all(not version.images[row].split for row in rows):
        learn = rows
    if not learn:
        have = sorted({image.split for image in version.images if image.split})
        raise Refused(f"No annotated image is in {train}. The dataset has the splits: {', '.join(have)}.")
    if folds := params.get("folds", 0):
        return _one_fold(version, learn, folds, params["fold"] or 1, params.get("group_by", ""))
    for name in (evaluate, "test"):
        score = [row for row in rows if version.images[row].split == name and name not in names]
        if score and name:
            return learn, score, name
    group = _groups(version, learn, params.get("group_by", ""))
    chosen = {name for name in group.values() if _bucket(name) < HELD_OUT}
    if not chosen and len(learn) > 1:
        chosen = {group[min(learn, key=lambda row: (_bucket(group[row]), row))]}
    held = {row for row in learn if group[row] in chosen}
    left = [row for row in learn if row not in held]
    if len(learn) > 1 and not left:
        raise Refused("All images belong to groups that would be held out to score on. Choose an eval_split.")
    if not held or not left:
        raise Refused(f"{len(learn)} annotated image is too few: one to learn from and one to score on are needed.")
    return left, sorted(held), "held out"


def _one_fold(
    version: Version, rows: list[int], folds: int, fold: int, group_by: str
) -> tuple[list[int], list[int], str]:
    """All parts but one to learn from, that one to score on; classes of images are spread evenly over the parts."""
    if len(rows) < folds:
        raise Refused(f"{len(rows)} annotated images are too few for {folds} folds: each needs one to score on.")
    number = _grouped(version, rows, folds, group_by) if group_by else _dealt(version, rows, folds)
    learn, score = ([row for row in rows if (number[row] == fold) == held] for held in (False, True))
    return learn, score, f"fold {fold} of {folds}" + (", whole groups" if group_by else "")


def _dealt(version: Version, rows: list[int], folds: int) -> dict[int, int]:
    """Assign rows to folds in turn, ordered by class and by the checksum of the path."""

    def place(row: int) -> tuple[int, str]:
        image = version.images[row]
        return -1 if image.label is None else image.label, hashlib.sha256(image.path.encode()).hexdigest()

    return {row: index % folds + 1 for index, row in enumerate(sorted(rows, key=place))}


def _grouped(version: Version, rows: list[int], folds: int, group_by: str) -> dict[int, int]:
    """The part of each row, so that no group is divided; classes are those of the images, else of what is on them."""
    group, drawn = _groups(version, rows, group_by), None
    if all(version.images[row].label is None for row in rows):
        drawn = classes_on(version)

    def classes(row: int) -> list[int]:
        label = version.images[row].label
        return drawn[row].nonzero()[0].tolist() if drawn is not None else [] if label is None else [label]

    try:
        numbers = groups.parts([(group[row], classes(row)) for row in rows], folds)
    except groups.NoGroups as error:
        raise Refused(str(error)) from error
    return dict(zip(rows, numbers, strict=True))


def _groups(version: Version, rows: list[int], group_by: str) -> dict[int, str]:
    try:
        names = groups.names([version.images[row].path for row in rows], group_by)
    except groups.NoGroups as error:
        raise Refused(str(error)) from error
    return dict(zip(rows, names, strict=True))


def _bucket(path: str) -> int:
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:4], "big") % 100


def boxes(version: Version) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per image: boxes [K, 4] float32 xyxy in its own pixels, class indices [K] int64.

    Polygons count as the box around them. Boxes without area are left out, crowd regions too.

    Raises:
        Refused: the version has no annotations.
    """
    try:
        coco = json.loads((version.folder / "annotations.json").read_text())
    except OSError:
        raise Refused(f"{version.name or 'The dataset'} has no boxes yet. Annotate some images, then train.") from None
    row_of = {image.path: row for row, image in enumerate(version.images)}
    row_of_id = {entry["id"]: row_of[entry["file_name"]] for entry in coco["images"] if entry["file_name"] in row_of}
    per_image: list[list[tuple[float, float, float, float, int]]] = [[] for _ in version.images]
    index = version.class_index
    for shape in coco["annotations"]:
        row = row_of_id.get(shape["image_id"])
        x, y, w, h = shape["bbox"]
        if row is not None and w > 0 and h > 0 and not shape.get("iscrowd") and shape["category_id"] in index:
            per_image[row].append((x, y, x + w, y + h, index[shape["category_id"]]))
    tables = [np.array(shapes, np.float64).reshape(-1, 5) for shapes in per_image]
    return [(table[:, :4].astype(np.float32), table[:, 4].astype(np.int64)) for table in tables]


def classes_on(version: Version) -> np.ndarray:
    """Return whether an image contains an object of a class, crowds included: [images, classes] bool.

    Raises:
        Refused: the version has no annotations.
    """
    try:
        coco = json.loads((version.folder / "annotations.json").read_text())
    except OSError:
        raise Refused(
            f"{version.name or 'The dataset'} has no objects yet. Annotate some images, then train."
        ) from None
    row_of = {image.path: row for row, image in enumerate(version.images)}
    path_of = {entry["id"]: entry["file_name"] for entry in coco["images"]}
    index = version.class_index
    shown = np.zeros((len(version.images), len(index)), bool)
    for shape in coco["annotations"]:
        row, column = row_of.get(path_of.get(shape["image_id"], "")), index.get(shape["category_id"])
        if row is not None and column is not None:
            shown[row, column] = True
    return shown


def annotated_rows(version: Version) -> list[int]:
    """Rows the COCO file lists: an image listed without a box is an empty image, one not listed is unknown."""
    try:
        coco = json.loads((version.folder / "annotations.json").read_text())
    except OSError:
        return []
    listed = {entry["file_name"] for entry in coco["images"]}
    return [row for row, image in enumerate(version.images) if image.path in listed]


def corners(shapes: Iterable[Mapping[str, Any]]) -> np.ndarray:
    """The boxes around shapes of a COCO file, without crowds: [K, 4] float32 xyxy."""
    boxes = [(x, y, x + w, y + h) for x, y, w, h in (s["bbox"] for s in shapes if not s.get("iscrowd"))]
    return np.array(boxes, np.float32).reshape(-1, 4)
