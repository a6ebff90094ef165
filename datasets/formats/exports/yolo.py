"""Write YOLO: a text file per image, an object per line, in parts of the image's width and height."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from datasets.formats.exports.comparison import WrittenObject, head_losses, image_losses, object_losses
from datasets.formats.exports.export import Drawn, ExportFormat, Notes, Piece, Source, box_of, carried
from datasets.formats.neutral import SPLITS
from datasets.shapes import geometry

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

UNSPLIT = "unsplit"  # folder of images without a split
ABOUT = (
    "images/<split>/… and labels/<split>/… have the same names; data.yaml has the splits and the classes.",
    "An image without a label file was not annotated; an empty label file says that nothing is on the image.",
    f"Images without a split are in {UNSPLIT}/. data.yaml names it only where no image has a split.",
)


class YoloFormat(ExportFormat):
    """Boxes: class, centre, width, height. With `outlines` the points of a polygon instead."""

    readme_lines = ABOUT

    def __init__(self, name: str, label: str, loses: StrPromise, *, outlines: bool) -> None:
        self.name, self.label, self.loses, self.outlines = name, label, loses, outlines

    def files(self, source: Source, notes: Notes) -> Iterator[Piece]:
        index = {item["id"]: number for number, item in enumerate(source.classes)}
        splits: set[str] = set()
        taken: set[PurePosixPath] = set()
        for image in source.images():
            splits.add(image.split)
            path = PurePosixPath(image.split or UNSPLIT) / image.path
            while path.with_suffix("") in taken:  # the same name with another ending would have the same labels
                path = path.with_stem(path.stem + "_")
            taken.add(path.with_suffix(""))
            if source.with_images:
                yield Piece(f"images/{path}", image=image.path)
            if image.annotated:
                text = "".join(f"{line}\n" for line in self._lines(image, index, notes))
                yield Piece(f"labels/{path.with_suffix('.txt')}", text.encode())
            notes.add_all(image_losses(image))
        yield Piece("data.yaml", _yaml(source, splits).encode())
        notes.add_all(head_losses(source.classes, source.head, {number: at + 1 for number, at in index.items()}))

    def _lines(self, image: Drawn, index: dict[int, int], notes: Notes) -> Iterator[str]:
        for entry, rings in carried(image, notes):
            if self.outlines:
                points = _relative(join_rings(rings), image)
            else:
                box = box_of(entry, image)
                centre = [box.x + box.width / 2, box.y + box.height / 2, box.width, box.height]
                points = _relative(centre, image)
            line = f"{index[entry['category_id']]} " + " ".join(f"{value:.8g}" for value in points)
            notes.add_all(object_losses(entry, rings, self._read_back(line, image), image))
            yield line

    def _read_back(self, line: str, image: Drawn) -> WrittenObject:
        """What a reader gets of a line."""
        numbers = [float(word) for word in line.split()[1:]]
        points = [value * (image.width, image.height)[at % 2] for at, value in enumerate(numbers)]
        if self.outlines:
            return WrittenObject(outlines=[points])
        x, y, width, height = points
        return WrittenObject(box=geometry.Box(x - width / 2, y - height / 2, width, height))


def _relative(points: list[float], image: Drawn) -> list[float]:
    """Pixels, x and y in turn, as parts of the image; outside it is none."""
    sides = (image.width, image.height)
    return [min(max(value / sides[number % 2], 0.0), 1.0) for number, value in enumerate(points)]


def join_rings(rings: list[list[float]]) -> list[float]:
    """Join parts to one outline of the same area; a line that is traversed in both directions connects them."""
    first, *others = rings
    outline = list(first)
    turn = geometry.signed_area(first) < 0
    for ring in others:
        part = _reversed(ring) if (geometry.signed_area(ring) < 0) != turn else ring
        at, to = _nearest(outline, part)
        outline = outline[: at + 2] + part[to:] + part[: to + 2] + outline[at:]
    return outline


def _reversed(ring: list[float]) -> list[float]:
    return [value for at in range(len(ring) - 2, -1, -2) for value in ring[at : at + 2]]


def _nearest(first: list[float], second: list[float]) -> tuple[int, int]:
    """Return the indices of the nearest points of two rings; of long rings only every n-th point is compared."""
    first_step, second_step = (2 * max(1, len(ring) // 400) for ring in (first, second))
    pairs = ((at, to) for at in range(0, len(first), first_step) for to in range(0, len(second), second_step))
    return min(pairs, key=lambda pair: _squared_distance(first, pair[0], second, pair[1]))


def _squared_distance(first: list[float], at: int, second: list[float], to: int) -> float:
    return (first[at] - second[to]) ** 2 + (first[at + 1] - second[to + 1]) ** 2


def _yaml(source: Source, splits: set[str]) -> str:
    lines = [f"# {source.title}".replace("\n", " "), "path: ."]
    # the trainer wants both train and val; without splits both name all images, which data.yaml says
    if not splits & set(SPLITS):
        lines += [f"train: images/{UNSPLIT}  # no splits were made: all images", f"val: images/{UNSPLIT}"]
    else:
        lines += [f"{split}: images/{split}" for split in SPLITS if split in splits]
    lines += ["names:"] + [
        f"  {number}: {json.dumps(item['name'], ensure_ascii=False)}  # id {item['id']}"
        for number, item in enumerate(source.classes)
    ]
    return "\n".join(lines) + "\n"


YOLO = YoloFormat(
    "yolo",
    "YOLO",
    _("Boxes only: polygons become their bounding boxes. Crowd objects, points, attributes and class ids are omitted."),
    outlines=False,
)
YOLO_OUTLINES = YoloFormat(
    "yolo-seg",
    "YOLO segment",
    _(
        "Polygons: boxes become four corners, holes are filled, parts are merged. Crowd objects, points and "
        "attributes are omitted."
    ),
    outlines=True,
)
