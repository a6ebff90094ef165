"""Judging what virtual people and viewers were told against what is there afterwards. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.checker import Findings

Fact = Mapping[str, Any]
ABSENT = "absent"
Rings = Any


@dataclass(frozen=True)
class Known:
    """What database and files say once everything rests.

    Attributes:
        jobs: numbers of the jobs of each name.
        shapes: what is stored under each shape's name: its rings, or None for a deleted one; one entry per row.
        datasets: of each data set of a name the digests of its files, None where it has no complete version.
        log: the bytes of an attempt's log.
        held: rows that somebody still works on, in words.
    """

    jobs: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[Rings]] = field(default_factory=dict)
    datasets: Mapping[str, Sequence[Sequence[str] | None]] = field(default_factory=dict)
    log: Callable[[int, int], bytes] = lambda _job, _attempt: b""
    held: Sequence[str] = ()


def check(facts: Iterable[Fact], known: Known, found: Findings) -> None:
    """Add to `found` every promise of the ledger that was not kept."""
    by_kind: dict[str, list[Fact]] = {}
    for fact in facts:
        by_kind.setdefault(fact["kind"], []).append(fact)

    def of(kind: str) -> list[Fact]:
        return by_kind.get(kind, [])

    if not of("rest"):
        found.add("stuck", "the people never came to rest")
    _submissions(of("submit"), of("submitted"), known, found)
    _edits(of("edit"), of("edited"), known, found)
    _uploads(of("upload"), of("uploaded"), known, found)
    for fact in of("exported"):
        _export(fact, found)
    for fact in of("view"):
        _view(fact, known, found)
    for fact in of("repeated"):
        found.add("lines", f"viewer {fact['viewer']}: job {fact['job']} was sent bytes from {fact['offset']} on twice")
    for fact in of("shrunk"):
        found.add("lines", f"viewer {fact['viewer']}: a log became shorter: {fact['text']}")
    for fact in of("missing"):
        found.add("lost", f"{fact['by']}: {fact['path']} is not there")
    for fact in of("signed_out"):
        found.add("errors", f"{fact['by']} was signed out at {fact['path']}")
    for fact in of("error"):
        found.add("errors", f"{fact['by']}: {fact['asked']} answered {fact['status']}: {fact['text']}")
    for fact in of("broke"):
        found.add("errors", f"a virtual person broke: {fact['text']}")
    for words in known.held:
        found.add("stuck", words)


def _ends(what: str, asked: list[Fact], answered: list[Fact], found: Findings) -> Iterator[tuple[Fact, Fact | None]]:
    """What was asked for, each with the answer if it was accepted; no answer and a refusal are noted."""
    answers = {fact["name"]: fact for fact in answered}
    for fact in asked:
        name, answer = fact["name"], answers.get(fact["name"])
        if answer is None or not answer["status"]:
            found.add("stuck", f"{what} {name} did not come to an end: {(answer or {}).get('text', '')}")
        elif answer["status"] >= 400:
            found.add("wrong", f"{what} {name} was refused with {answer['status']}: {answer.get('text', '')}")
            answer = None
        yield fact, answer if answer and answer["status"] else None


def _submissions(asked: list[Fact], answered: list[Fact], known: Known, found: Findings) -> None:
    for fact, answer in _ends("submission", asked, answered, found):
        name, jobs = fact["name"], known.jobs.get(fact["name"], ())
        if len(jobs) > 1:
            found.add("twice", f"one submission made jobs {list(jobs)}")
        if answer is None:
            continue
        if not jobs:
            found.add("lost", f"submission {name} was accepted as job {answer['job']}, which is not there")
        elif answer["job"] not in jobs:
            found.add("wrong", f"submission {name} was called job {answer['job']} and is {list(jobs)}")


def _edits(asked: list[Fact], answered: list[Fact], known: Known, found: Findings) -> None:
    stored = {fact["id"] for fact in answered}
    may_be: dict[str, list[Rings]] = {}
    for fact in asked:
        if fact["id"] in stored:
            may_be[fact["shape"]] = [fact["rings"]]
        else:
            may_be.setdefault(fact["shape"], [ABSENT]).append(fact["rings"])
    for shape, values in may_be.items():
        rows = known.shapes.get(shape, ())
        if len(rows) > 1:
            found.add("twice", f"shape {shape} is stored {len(rows)} times")
        is_there = rows[0] if rows else ABSENT
        if is_there not in values:
            found.add("lost", f"shape {shape} is {is_there}, acknowledged was {values[0]}")


def _uploads(asked: list[Fact], answered: list[Fact], known: Known, found: Findings) -> None:
    for fact, answer in _ends("upload", asked, answered, found):
        name, there = fact["name"], known.datasets.get(fact["name"], ())
        if len(there) > 1:
            found.add("twice", f"one upload made {len(there)} data sets named {name}")
        if answer is None:
            continue
        if not there or there[0] is None:
            found.add("lost", f"upload {name} was accepted; it has no complete version")
        elif list(there[0]) != list(fact["sums"]):
            found.add("bytes", f"upload {name}: what is stored is not what was sent")


def _export(fact: Fact, found: Findings) -> None:
    about = f"{fact['by']}: export {fact.get('export', '')}"
    refused = fact["status"] >= 400
    if not fact["status"] or not (refused or fact.get("state") in {"success", "failed"}):
        found.add("stuck", f"{about} was never answered or never ended")
    elif refused or fact.get("state") == "failed":
        found.add("wrong", f"{about} failed: {fact['status']} {fact.get('detail') or fact.get('text', '')}")
    elif fact["sha256"] != fact["file_sha256"]:
        found.add("bytes", f"{about}: the file is not the one that was written")
    elif fact["boxes"] < fact["drawn"]:
        found.add("lost", f"{about} holds {fact['boxes']} boxes of {fact['drawn']} that were acknowledged before")


def _view(fact: Fact, known: Known, found: Findings) -> None:
    log, about = (
        known.log(fact["job"], fact["attempt"]),
        f"viewer {fact['viewer']}: job {fact['job']} attempt {fact['attempt']}",
    )
    if hashlib.sha256(log[: fact["size"]]).hexdigest() != fact["sha256"]:
        found.add("lines", f"{about}: {fact['size']} bytes were shown that are not those of the log ({len(log)})")
    elif not fact["whole"]:
        found.add("stuck", f"{about}: the end of the log was never reached, {fact['size']} of {len(log)} bytes")
    elif fact["size"] != len(log):
        found.add("lines", f"{about}: {fact['size']} bytes were called the whole log of {len(log)}")
