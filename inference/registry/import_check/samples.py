"""Sample images on which an imported model is checked: scaled down, with their ground truth where it is known."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from PIL import Image

from inference.kit.contracts.served_task import CLASSES
from inference.kit.model_io import decode
from inference.kit.prediction.samples import Pictures, Unopened
from inference.kit.samples import ground_truth

MAX_SIDE_PX = 1280  # larger images are scaled down before the model runs on them and before they are displayed
MAX_JPEG_BYTES = 1 << 20  # of a displayed image; the quality is reduced until the file fits
JPEG_QUALITY, MIN_JPEG_QUALITY, JPEG_QUALITY_STEP = 85, 25, 20
MAX_OBJECTS = 300  # ground truth boxes of an image
MAX_CANDIDATES = 50  # images of a dataset version; more than are needed, because some may be damaged
MAX_PER_CLASS = 10  # candidates of each class, for classification datasets


class NoPictures(Exception):
    """None of the images can be read."""


@dataclass(frozen=True)
class Object:
    """A ground truth object: class name and box (x1, y1, x2, y2) in pixels of the scaled image."""

    name: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Picture:
    """A scaled image on which the model runs, with its ground truth.

    Attributes:
        name: file name.
        objects: ground truth boxes; None without such annotations, empty if the image is known to show none.
        label: ground truth class of the whole image; "" if unknown.
    """

    name: str
    image: Image.Image
    objects: Sequence[Object] | None = None
    label: str = ""

    @property
    def has_ground_truth(self) -> bool:
        return self.objects is not None or bool(self.label)

    def to_json(self) -> dict[str, Any]:
        """Return the values that the preview page displays."""
        boxes = [{"name": item.name, "box": list(item.box)} for item in self.objects or ()]
        width, height = self.image.size
        return {"name": self.name[:200], "width": width, "height": height, "label": self.label[:200], "truth": boxes}


@dataclass(frozen=True)
class _Candidate:
    """An image that may be used, with its ground truth in pixels of the original image."""

    path: str  # relative to the image folder; of an uploaded image its name
    size: tuple[int, int] = (0, 0)  # width, height; zeros: unknown
    boxes: Sequence[tuple[str, Sequence[float]]] | None = None  # class name and (x1, y1, x2, y2)
    label: str = ""
    classes: Sequence[str] = field(default_factory=tuple)  # names of the classes among the boxes

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


def load(uploaded: Path, dataset: str, images: str, params: Mapping[str, Any], into: Path) -> list[Picture]:
    """Load the uploaded images, then images of the dataset version, and save each one as a JPEG for the page.

    Images that cannot be read are skipped with a line in the log.

    Args:
        uploaded: folder with the files 0, 1, …
        dataset: folder of a dataset version; "" for none.
        images: folder of the images of the dataset version.
        params: `names` (file names of the uploaded images), `most` (maximum number of images) and `max_pixels` (of
            one image).
        into: folder to create; receives 0.jpg, 1.jpg, …

    Raises:
        NoPictures: no image can be read.
    """
    into.mkdir(exist_ok=True)
    pictures: list[Picture] = []
    for name, candidate, read_bytes in _iter_candidates(uploaded, dataset, images, params["names"]):
        if len(pictures) == params["most"]:
            break
        try:
            image = decode.open_image(read_bytes(), max_pixels=params["max_pixels"])
            pictures.append(_scale_and_save(name, candidate, image, into / f"{len(pictures)}.jpg"))
        except (decode.BadImage, Unopened, OSError) as exc:
            sys.stdout.write(f"{name} is left out: {exc}\n")
    if not pictures:
        raise NoPictures
    return pictures


def _iter_candidates(
    uploaded: Path, dataset: str, images: str, names: Sequence[str]
) -> Iterator[tuple[str, _Candidate, Callable[[], bytes]]]:
    """Yield name, candidate and a function that reads the file: uploaded images first, then those of the dataset."""
    for index, name in enumerate(names):
        yield name, _Candidate(name), (uploaded / str(index)).read_bytes
    if dataset:
        folder = Pictures(Path(images))
        for candidate in _list_dataset(Path(dataset)):
            yield candidate.name, candidate, partial(folder.read, candidate.path)


def _scale_and_save(name: str, candidate: _Candidate, image: Image.Image, target: Path) -> Picture:
    """Scale an image and its boxes down, and save the image as a JPEG of at most `MAX_JPEG_BYTES` if possible."""
    original_size = image.size
    scaled = image.convert("RGB")
    scaled.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Image.Resampling.BILINEAR)
    quality = JPEG_QUALITY
    scaled.save(target, "JPEG", quality=quality)
    while target.stat().st_size > MAX_JPEG_BYTES and quality > MIN_JPEG_QUALITY:
        quality -= JPEG_QUALITY_STEP
        scaled.save(target, "JPEG", quality=quality)
    objects = None
    if candidate.boxes is not None:
        width, height = candidate.size if candidate.size[0] and candidate.size[1] else original_size
        scale_x, scale_y = scaled.width / width, scaled.height / height
        objects = [
            Object(class_name, (x1 * scale_x, y1 * scale_y, x2 * scale_x, y2 * scale_y))
            for class_name, (x1, y1, x2, y2) in candidate.boxes[:MAX_OBJECTS]
        ]
    return Picture(name, scaled, objects, candidate.label)


def _list_dataset(root: Path) -> list[_Candidate]:
    """Return the candidates of a dataset version.

    Classification datasets: some images of each class in turn. Other datasets: the images with the most objects first,
    then with the most classes. Without usable ground truth: the first images of the manifest.
    """
    try:
        truth = ground_truth.read(root, "")
    except ground_truth.Unfit:
        with (root / "manifest.jsonl").open(encoding="utf-8") as file:
            paths = [json.loads(line)["path"] for line in file if line.strip()]
        return [_Candidate(path) for path in paths[:MAX_CANDIDATES]]
    class_names = {item.id: item.name for item in truth.classes}
    if truth.task == CLASSES:
        return _alternate_classes(truth, class_names)
    rows = []
    for sample in truth.samples:
        boxes = [(class_names.get(box.class_id, ""), box.corners) for box in sample.boxes if not box.crowd]
        boxes = [(name, corners) for name, corners in boxes if ground_truth.has_area(corners)]
        classes = sorted({name for name, _corners in boxes})
        rows.append(_Candidate(sample.path, (sample.width, sample.height), boxes, classes=classes))
    return sorted(rows, key=lambda row: (-len(row.boxes or ()), -len(row.classes), row.path))[:MAX_CANDIDATES]


def _alternate_classes(truth: ground_truth.Truth, class_names: Mapping[int, str]) -> list[_Candidate]:
    """Return at most `MAX_PER_CLASS` images of each class, alternating between the classes."""
    by_class: dict[str, list[_Candidate]] = defaultdict(list)
    for sample in truth.samples:
        label = class_names.get(sample.label or 0, "") if sample.label is not None else ""
        if len(by_class[label]) < MAX_PER_CLASS:
            by_class[label].append(_Candidate(sample.path, label=label))
    rounds = max(map(len, by_class.values()))
    alternating = [rows[index] for index in range(rounds) for rows in by_class.values() if index < len(rows)]
    return alternating[:MAX_CANDIDATES]
