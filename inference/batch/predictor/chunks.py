"""Files of 64 answers each: whole or not there, so that whoever goes on does each exactly once.

The first line of a chunk is its head, what it holds in numbers; one line for each picture follows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.kit.samples.run import same, write

SIZE = 64  # pictures
FOLDER = "chunks"
PREVIEW = "preview.jsonl"  # predictions of the first chunk beside the folder, until it is complete
Line = dict[str, Any]  # the answer to one picture, or why there is none


def name_of(number: int) -> str:
    return f"{number:07d}.jsonl"


@dataclass(frozen=True)
class Head:
    """What a chunk holds: pictures, path and code of each without an answer, predictions in all and of each class."""

    pictures: int
    broken: list[list[str]]
    predictions: int
    classes: dict[str, int]

    @classmethod
    def from_lines(cls, lines: Iterable[Line], *, placed: bool) -> Head:
        """Count lines; `placed`: all predictions of an image count, as each has a location in it."""
        pictures, broken, classes = 0, [], Counter[str]()
        for line in lines:
            pictures += 1
            broken += [[line["path"], line["error"]]] if "error" in line else []
            answers = line.get("predictions", ())
            classes.update(str(answer.get("name", "")) for answer in (answers if placed else _positive(answers)))
        return cls(pictures, broken, classes.total(), dict(classes))

    def as_dict(self) -> dict[str, Any]:
        return {
            "pictures": self.pictures, "broken": self.broken, "predictions": self.predictions, "classes": self.classes,
        }  # fmt: skip


def _positive(answers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the positive predictions: present tags, anomalies, else the best class."""
    for index, answer in enumerate(answers):
        is_present = answer.get("present", answer.get("anomalous"))
        if is_present if is_present is not None else not index:
            yield answer


class Chunks:
    """The chunks of `total` pictures in a folder that all machines of a job write into; see `Head.of` for `placed`."""

    def __init__(self, folder: Path, total: int, *, placed: bool) -> None:
        self.folder, self.total, self.placed = folder, total, placed
        self.count = -(-total // SIZE)
        self._heads: dict[int, Head] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def places(self, number: int) -> range:
        """Places of its pictures among all."""
        return range(number * SIZE, min((number + 1) * SIZE, self.total))

    def head(self, number: int) -> Head | None:
        """Return the counts of a chunk; None if it does not exist yet."""
        if number not in self._heads:
            head = _head_of(self.folder / name_of(number))
            if head is None or head.pictures != len(self.places(number)):
                return None
            self._heads[number] = head
        return self._heads[number]

    def heads(self) -> list[Head]:
        """Return the counts of existing chunks."""
        names = {path.name for path in self.folder.iterdir()}
        return [head for number in range(self.count) if name_of(number) in names and (head := self.head(number))]

    @property
    def is_whole(self) -> bool:
        return len(self.heads()) == self.count

    def take_over(self, earlier: Path, numbers: Iterable[int]) -> int:
        """Copy the complete chunks of an earlier attempt; returns their number."""
        copied = 0
        for number in numbers:
            head = _head_of(earlier / name_of(number))
            if head and head.pictures == len(self.places(number)) and self.head(number) is None:
                target = self.folder / name_of(number)
                target.unlink(missing_ok=True)
                same(earlier / name_of(number), target)
                copied += 1
        return copied

    def store(self, number: int, lines: list[Line]) -> None:
        """Write a chunk, completely or not at all."""
        head = Head.from_lines(lines, placed=self.placed)
        texts = (json.dumps(entry) for entry in (head.as_dict(), *lines))
        write(self.folder / name_of(number), "".join(f"{text}\n" for text in texts))
        self._heads[number] = head


def _head_of(path: Path) -> Head | None:
    try:
        with path.open(encoding="utf-8") as file:
            return Head(**json.loads(file.readline()))
    except (OSError, ValueError, TypeError):
        return None
