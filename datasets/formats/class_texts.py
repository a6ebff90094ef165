"""Recognize text files that name the class of an image and nothing else. They are not read, but reported."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import PurePosixPath

from datasets.formats import class_lists
from datasets.formats.image_names import stem_of
from datasets.formats.listing import Listing
from datasets.formats.problems import Problems

HEAD_BYTES = 64 << 10
HEAD_LINES = 20
MAX_WORD_LENGTH = 100
_SEPARATORS = re.compile(r"[\s,;]+")


class ClassTexts:
    """The texts of a folder that name classes of images.

    Two forms are known: a file named like an image that holds one word, or only names or numbers from the list of
    classes; and a list whose lines are the name of an image and one word.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    def has(self, name: str) -> bool:
        """Whether the file is one of them."""
        if not name.lower().endswith((".txt", ".csv", ".tsv", ".lst")):
            return False
        lines = self._lines(name)
        if not lines:
            return False
        if stem_of(PurePosixPath(name).stem) in self._stems and self._are_classes(lines):
            return True
        rows = [_SEPARATORS.split(line) for line in lines]
        pairs = sum(len(row) == 2 and self._is_image(row[0]) and not self._is_image(row[1]) for row in rows)
        return pairs * 2 > len(rows)

    def _lines(self, name: str) -> list[str]:
        try:
            with (self._listing.root / name).open("rb") as file:
                text = file.read(HEAD_BYTES).decode("utf-8", "replace")
        except OSError:
            return []
        return [line.strip() for line in text.splitlines() if line.strip()][:HEAD_LINES]

    def _are_classes(self, lines: list[str]) -> bool:
        if len(lines) == 1 and len(lines[0]) <= MAX_WORD_LENGTH and not _SEPARATORS.search(lines[0]):
            return True
        return all(line.casefold() in self._classes for line in lines)

    def _is_image(self, word: str) -> bool:
        return stem_of(PurePosixPath(word.replace("\\", "/")).name) in self._stems

    @cached_property
    def _stems(self) -> set[str]:
        return {stem_of(PurePosixPath(path).name) for path in self._listing.images}

    @cached_property
    def _classes(self) -> set[str]:
        """Names and numbers of the classes that lists and YAML files name."""
        names = dict(class_lists.read_lists(self._listing, Problems()).by_index)
        for name in [*self._listing.with_suffix(".yaml"), *self._listing.with_suffix(".yml")]:
            names |= class_lists.yaml_names(class_lists.yaml_object(self._listing, name) or {}) or {}
        return {name.casefold() for name in names.values()} | {str(index) for index in names}
