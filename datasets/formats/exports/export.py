"""What an export format is. Pure: no database; it makes the files of an archive one after the other.

What a format cannot carry is left out or changed, counted, and said in the README of each archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from datasets import shapes
from datasets.shapes import geometry

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

README = "README.txt"


@dataclass(frozen=True, slots=True)
class Drawn:
    """An image and what is drawn on it.

    Args:
        annotated: False: not reviewed, so that it is not taken for empty.
        objects: annotations as a version's annotations.json has them.
        extra: further fields of the image (licence, address).
    """

    path: str
    width: int
    height: int
    split: str
    annotated: bool
    objects: list[dict[str, Any]]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """What is exported.

    Args:
        title: whose data it is: "cells v3".
        classes: {"id", "name"} in their order, and further fields of theirs (keypoint names, skeleton).
        images: gives them, in the same order each time it is called; formats that look ahead call it twice.
        with_images: whether the archive holds the images themselves, or only their annotations.
        head: "info" and "licenses" of the file the data came with.
    """

    title: str
    classes: list[dict[str, Any]]
    images: Callable[[], Iterable[Drawn]]
    with_images: bool = True
    head: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of the archive: its bytes, or an image of the version."""

    name: str
    data: bytes = b""
    image: str = ""


@dataclass(slots=True)
class Notes:
    """Counts what could not be carried, by sentence: what `comparison` finds, and objects that are left out."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, sentence: str) -> None:
        self.counts[sentence] += 1

    def add_all(self, sentences: Iterable[str]) -> None:
        self.counts.update(sentences)

    def lines(self) -> list[str]:
        return [f"{count} × {sentence}" for sentence, count in self.counts.most_common()]


class ExportFormat:
    """A format. A subclass per format, its instances in the registry."""

    name: str  # in addresses and the API; at most 8 characters
    label: str
    loses: StrPromise | str  # for people who choose: what it cannot carry
    readme_lines: ClassVar[tuple[str, ...]] = ()  # lines of the README on how it is laid out

    def pieces(self, source: Source) -> Iterator[Piece]:
        """The files of the archive, the README last."""
        notes = Notes()
        yield from self.files(source, notes)
        yield Piece(README, self._readme(source, notes).encode())

    def files(self, source: Source, notes: Notes) -> Iterator[Piece]:
        """Yield the files except the README; what is lost is added to `notes`."""
        raise NotImplementedError

    def _readme(self, source: Source, notes: Notes) -> str:
        lines = [f"{source.title}, written as {self.label}", "", *self.readme_lines]
        if not source.with_images:
            lines.append(f"The images themselves are not in this file: take them from the dataset ({source.title}).")
        lost = notes.lines()
        lines += ["", "What this format could not carry:" if lost else "Nothing was lost.", *lost]
        return "\n".join(lines) + "\n"


CROWD = "a crowd (iscrowd=1), left out"
NO_AREA = "an object without area (a point, a line), left out"
ATTRIBUTES = "an object with attributes, which are not written"
OWN = {"shape", "rings"}  # attributes that only say of which kind a shape is


def carried(image: Drawn, notes: Notes) -> Iterator[tuple[dict[str, Any], list[list[float]]]]:
    """The objects of an image that have an area and are single, with their outlines."""
    for entry in image.objects:
        if entry.get("iscrowd"):
            notes.add(CROWD)
            continue
        name, rings = shapes.of_stored(entry).editable(entry)
        outlines = shapes.get(name).outlines(rings)
        if not outlines or geometry.area(outlines) <= geometry.MIN_AREA:
            notes.add(NO_AREA)
            continue
        yield entry, [list(ring) for ring in outlines]


def box_of(entry: Mapping[str, Any], image: Drawn) -> geometry.Box:
    """The box that the annotation states, cut at the image's border; it need not be that of its outline."""
    return geometry.clip_box(geometry.Box(*entry["bbox"]), image.width, image.height)


def foreign_attributes(attributes: Mapping[str, Any]) -> set[str]:
    """Names of attributes that say something beyond the kind of a shape."""
    return {name for name, value in attributes.items() if name not in OWN and value not in (None, False, "", 0)}
