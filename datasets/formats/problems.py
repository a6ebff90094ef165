"""What is wrong with data that comes in and what was left aside, by code, counted, with examples. No database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiplatform.lib.wording import Message

MAX_LISTED = 20_000  # more of one sort are counted, not listed
EXAMPLES = 5  # of a group, in the report
FATAL, PROBLEM, NOTE = "fatal", "problem", "note"
_ORDER = {FATAL: 0, PROBLEM: 1, NOTE: 2}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is worth telling about the data, described for its author.

    Args:
        path: the file, or the JSON path inside it ("annotations[12].bbox").
        code: stable word for scripts and counts.
        says: the sentence for people, of `report_sentences`, as code and facts: each reader sees it in their language.
        level: FATAL: the data set cannot be imported; PROBLEM: something is left out or changed that was meant to
            count; NOTE: nothing is wrong, but it should be known.
        count: number of affected things: shapes left out with their image.
        skipped: annotated objects of the source that are not imported because of it.
    """

    path: str
    code: str
    says: Message
    level: str = PROBLEM
    count: int = 1
    skipped: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.says, Message):  # readers come from elsewhere too, and reports are kept
            raise TypeError("A problem has a message with a registered code, not a text.")

    @property
    def fatal(self) -> bool:
        return self.level == FATAL

    def as_dict(self) -> dict[str, Any]:
        """What a report keeps of it."""
        return {"path": self.path, "code": self.code, "message": self.says.as_json(), "fatal": self.fatal}


@dataclass(slots=True)
class Problems:
    """Collects problems and notes: all are counted by code, the first `KEPT` of each sort are kept in full.

    `counts`, `listed` and the length are those of problems; `notes` and `noted` those of notes. `skipped` counts the
    annotated objects that are not imported.
    """

    listed: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    fatal: int = 0
    skipped: int = 0
    noted: list[Problem] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    _groups: dict[tuple[str, str], Group] = field(default_factory=dict)

    def add(self, path: str, code: str, says: Message, *, fatal: bool = False, count: int = 1) -> None:
        self.counts[code] += count
        self.fatal += fatal
        self._add(self.listed, Problem(path, code, says, FATAL if fatal else PROBLEM, count))

    def skip(self, path: str, code: str, says: Message, *, count: int = 1) -> None:
        """Report `count` annotated objects that are not imported. The rest of their file is."""
        self.counts[code] += count
        self.skipped += count
        self._add(self.listed, Problem(path, code, says, PROBLEM, count, count))

    def note(self, path: str, code: str, says: Message, *, count: int = 1) -> None:
        """Say something that is in order, such as a file that is no part of the data."""
        self.notes[code] += count
        self._add(self.noted, Problem(path, code, says, NOTE, count))

    def _add(self, into: list[Problem], problem: Problem) -> None:
        if len(into) < MAX_LISTED:
            into.append(problem)
        group = self._groups.setdefault((problem.level, problem.code), Group(problem.code, problem.level))
        group.count += problem.count
        group.skipped += problem.skipped
        if len(group.examples) < EXAMPLES:
            group.examples.append(problem)

    def first(self, count: int) -> list[Problem]:
        """The first `count` problems, fatal ones before the others, then by path."""
        return sorted(self.listed, key=lambda problem: (not problem.fatal, natural(problem.path)))[:count]

    def groups(self) -> list[Group]:
        """One entry per level and code: what forbids the import first, notes last, the frequent before the rare."""
        return sorted(self._groups.values(), key=lambda group: (_ORDER[group.level], -group.count, group.code))

    def __len__(self) -> int:
        return sum(self.counts.values())


@dataclass(slots=True)
class Group:
    """All problems of one level and code, with the first few of them."""

    code: str
    level: str
    count: int = 0
    skipped: int = 0
    examples: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        examples = [{"path": problem.path, "message": problem.says.as_json()} for problem in self.examples]
        return {
            "code": self.code,
            "level": self.level,
            "count": self.count,
            "skipped": self.skipped,
            "examples": examples,
        }


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key under which "img10" comes after "img9"."""
    key: list[tuple[int, int, str]] = []
    word, digits = "", ""
    for char in text + "\0":
        if char.isdecimal() and char.isascii():
            if word:
                key.append((1, 0, word))
                word = ""
            digits += char
        else:
            if digits:
                key.append((0, int(digits[:4000]), ""))
                digits = ""
            word += char
    return [*key, (1, 0, word.rstrip("\0"))]
