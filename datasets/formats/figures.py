"""Count what a version holds: objects by class and split, sizes, and images that stand in two splits.

Read from the version's own files, manifest and annotations, an image at a time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datasets.formats import leaks, stored

#: Upper ends of the bars, in pixels: an image's longer side, and the side of a square as large as an object's box.
IMAGE_PX = (64, 128, 256, 512, 1024, 2048, 4096)
OBJECT_PX = (8, 16, 32, 64, 128, 256, 512)

Drawn = Iterable[dict[str, Any]]  # COCO annotations


def read(folder: Path) -> dict[str, Any]:
    """The figures of a version's folder, as `DatasetVersion.figures` keeps them.

    Returns:
        objects: split → class id as text → objects (or images, where images carry one class).
        images: split → class id as text → images with the class.
        unannotated, empty: split → images that were not reviewed; images confirmed to be empty.
        image_px, object_px: counts by `IMAGE_PX` and `OBJECT_PX`, larger ones last.
        leaks: [{"of", "also", "images", "total"}]: so many of the `total` images of split `of` stand in `also` too.
        twins: images that stand more than once in their split.
    """
    count = _Count()
    for line, image, drawn in stored.lines(folder):
        count.add(line, None if image is None else drawn)
    return count.as_dict()


class _Count:
    def __init__(self) -> None:
        self.objects: dict[str, Counter[int]] = defaultdict(Counter)
        self.images: dict[str, Counter[int]] = defaultdict(Counter)
        self.unannotated: Counter[str] = Counter()
        self.empty: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self.image_px = [0] * (len(IMAGE_PX) + 1)
        self.object_px = [0] * (len(OBJECT_PX) + 1)
        self.contents: dict[bytes, Counter[str]] = {}

    def add(self, line: dict[str, Any], drawn: Drawn | None) -> None:
        split = line["split"]
        self.total[split] += 1
        self.image_px[_bar(max(line["width"], line["height"]), IMAGE_PX)] += 1
        classes = [] if line["label"] is None else [line["label"]]
        for entry in drawn or ():
            classes.append(entry["category_id"])
            _x, _y, width, height = entry["bbox"]
            self.object_px[_bar((width * height) ** 0.5, OBJECT_PX)] += 1
        if classes:
            self.objects[split].update(classes)
            self.images[split].update(set(classes))
        elif drawn is None:
            self.unannotated[split] += 1
        else:
            self.empty[split] += 1
        self.contents.setdefault(bytes.fromhex(line["sha256"]), Counter())[split] += 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "objects": _plain(self.objects),
            "images": _plain(self.images),
            "unannotated": dict(self.unannotated),
            "empty": dict(self.empty),
            "image_px": self.image_px,
            "object_px": self.object_px,
            "leaks": leaks.between(self.contents.values()),
            "twins": sum(times - 1 for splits in self.contents.values() for times in splits.values() if times > 1),
        }


def _bar(size: float, ends: tuple[int, ...]) -> int:
    return next((index for index, end in enumerate(ends) if size <= end), len(ends))


def _plain(counts: dict[str, Counter[int]]) -> dict[str, dict[str, int]]:
    return {split: {str(number): count for number, count in by.items()} for split, by in counts.items()}
