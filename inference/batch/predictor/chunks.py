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
    def of(cls, lines: Iterable[Line], *, placed: bool) -> Head:
        """Count; `placed`: all answers to a picture count, as each lies somewhere on it."""
        pictures, broken, classes = 0, [], Counter[str]()
        for line in lines:
            pictures += 1
            broken += [[line["path"], line["error"]]] if "error" in line else []
            answers = line.get("predictions", ())
            classes.update(str(one.get("name", "")) for one in (answers if placed else _said(answers)))
        return cls(pictures, broken, classes.total(), dict(classes))

    def as_dict(self) -> dict[str, Any]:
        return {
            "pictures": self.pictures, "broken": self.broken, "predictions": self.predictions, "classes": self.classes,
        }  # fmt: skip


def _said(answers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those that say something is there: the tags that are, what is unusual, else the best class."""
    for place, one in enumerate(answers):
        there = one.get("present", one.get("anomalous"))
        if there if there is not None else not place:
            yield one


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
        """What a chunk holds; None where it is not there yet."""
        if number not in self._heads:
            found = _head_of(self.folder / name_of(number))
            if found is None or found.pictures != len(self.places(number)):
                return None
            self._heads[number] = found
        return self._heads[number]

    def heads(self) -> list[Head]:
        """Those that are there."""
        there = {path.name for path in self.folder.iterdir()}
        return [found for number in range(self.count) if name_of(number) in there and (found := self.head(number))]

    @property
    def is_whole(self) -> bool:
        return len(self.heads()) == self.count

    def take_over(self, earlier: Path, numbers: Iterable[int]) -> int:
        """Take the chunks of an earlier attempt that are whole; how many."""
        taken = 0
        for number in numbers:
            found = _head_of(earlier / name_of(number))
            if found and found.pictures == len(self.places(number)) and self.head(number) is None:
                target = self.folder / name_of(number)
                target.unlink(missing_ok=True)
                same(earlier / name_of(number), target)
                taken += 1
        return taken

    def put(self, number: int, lines: list[Line]) -> None:
        """Write a chunk, completely or not at all."""
        head = Head.of(lines, placed=self.placed)
        texts = (json.dumps(entry) for entry in (head.as_dict(), *lines))
        write(self.folder / name_of(number), "".join(f"{text}\n" for text in texts))
        self._heads[number] = head


def _head_of(path: Path) -> Head | None:
    try:
        with path.open(encoding="utf-8") as file:
            return Head(**json.loads(file.readline()))
    except (OSError, ValueError, TypeError):
        return None
