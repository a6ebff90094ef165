"""The example pictures, made small, and what is known to be on them."""

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

SIDE = 1280  # px: pictures are made so small at most before they are tried and shown
MAX_SHOWN_BYTES = 1 << 20  # of a picture that is shown
MAX_TRUTHS = 300  # objects of a picture
TRIED = 50  # pictures of a dataset version that are opened at most: some may be damaged


class NoPictures(Exception):
    """Not one of the pictures can be read."""


@dataclass(frozen=True)
class Object:
    """What is known to be on a picture: a class and its box, x1 y1 x2 y2 in pixels of the small picture."""

    name: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Picture:
    """An image that the model is run on. `objects` None and `label` "" mean that it has no such annotations."""

    name: str
    image: Image.Image
    objects: Sequence[Object] | None = None
    label: str = ""

    @property
    def has_truth(self) -> bool:
        return self.objects is not None or bool(self.label)

    def to_json(self) -> dict[str, Any]:
        """Return what the page needs of it."""
        boxes = [{"name": item.name, "box": list(item.box)} for item in self.objects or ()]
        width, height = self.image.size
        return {"name": self.name[:200], "width": width, "height": height, "label": self.label[:200], "truth": boxes}


@dataclass(frozen=True)
class _Known:
    """What a dataset version says of one of its pictures, in the picture's own pixels."""

    path: str  # below the folder of its pictures
    size: tuple[int, int] = (0, 0)
    boxes: Sequence[tuple[str, Sequence[float]]] | None = None
    label: str = ""
    kinds: Sequence[str] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


def load(uploaded: Path, dataset: str, images: str, params: Mapping[str, Any], into: Path) -> list[Picture]:
    """Open the uploaded images, then those of the dataset version with most objects; saves each as a JPEG.

    Args:
        uploaded: a folder of files called 0, 1, …
        dataset: folder of a dataset version, "" for none; its pictures lie below `images`.
        params: `names` of the uploaded files, `most` pictures in all, `max_pixels` of one.
        into: made, and gets 0.jpg, 1.jpg, …

    Raises:
        NoPictures: none can be read.
    """
    into.mkdir(exist_ok=True)
    pictures: list[Picture] = []
    for name, entry, data in _bytes(uploaded, dataset, images, params["names"]):
        if len(pictures) == params["most"]:
            break
        try:
            image = decode.open_image(data(), max_pixels=params["max_pixels"])
            pictures.append(_picture(name, entry, image, into / f"{len(pictures)}.jpg"))
        except (decode.BadImage, Unopened, OSError) as exc:
            sys.stdout.write(f"{name} is left out: {exc}\n")
    if not pictures:
        raise NoPictures
    return pictures


def _bytes(
    uploaded: Path, dataset: str, images: str, names: Sequence[str]
) -> Iterator[tuple[str, _Known, Callable[[], bytes]]]:
    """Yield each image with what is known of it and a function that reads its bytes."""
    for index, name in enumerate(names):
        yield name, _Known(name), (uploaded / str(index)).read_bytes
    if dataset:
        folder = Pictures(Path(images))
        for entry in _list_dataset(Path(dataset)):
            yield entry.name, entry, partial(folder.read, entry.path)


def _picture(name: str, entry: _Known, image: Image.Image, target: Path) -> Picture:
    own = image.size
    small = image.convert("RGB")
    small.thumbnail((SIDE, SIDE), Image.Resampling.BILINEAR)
    quality = 85
    small.save(target, "JPEG", quality=quality)
    while target.stat().st_size > MAX_SHOWN_BYTES and quality > 25:
        quality -= 20
        small.save(target, "JPEG", quality=quality)
    objects = None
    if entry.boxes is not None:
        width, height = entry.size if entry.size[0] and entry.size[1] else own
        across, down = small.width / width, small.height / height
        objects = [
            Object(kind, (x1 * across, y1 * down, x2 * across, y2 * down))
            for kind, (x1, y1, x2, y2) in entry.boxes[:MAX_TRUTHS]
        ]
    return Picture(name, small, objects, entry.label)


def _list_dataset(root: Path) -> list[_Known]:
    """Return images of a version: those with most classes and most objects first, or each class in turn."""
    try:
        truth = ground_truth.read(root, "")
    except ground_truth.Unfit:
        with (root / "manifest.jsonl").open(encoding="utf-8") as file:
            paths = [json.loads(line)["path"] for line in file if line.strip()]
        return [_Known(path) for path in paths[:TRIED]]
    names = {kind.id: kind.name for kind in truth.classes}
    if truth.task == CLASSES:
        return _in_turn(truth, names)
    rows = []
    for sample in truth.samples:
        own = [(names.get(box.class_id, ""), box.corners) for box in sample.boxes if not box.crowd]
        own = [(name, corners) for name, corners in own if ground_truth.has_area(corners)]
        kinds = sorted({name for name, _corners in own})
        rows.append(_Known(sample.path, (sample.width, sample.height), own, kinds=kinds))
    return sorted(rows, key=lambda row: (-len(row.boxes or ()), -len(row.kinds), row.path))[:TRIED]


def _in_turn(truth: ground_truth.Truth, names: Mapping[int, str]) -> list[_Known]:
    """Return some images of each class, one class after the other."""
    by_class: dict[str, list[_Known]] = defaultdict(list)
    for sample in truth.samples:
        label = names.get(sample.label or 0, "") if sample.label is not None else ""
        if len(by_class[label]) < 10:
            by_class[label].append(_Known(sample.path, label=label))
    turns = max(map(len, by_class.values()))
    return [rows[turn] for turn in range(turns) for rows in by_class.values() if turn < len(rows)][:TRIED]
