"""Judging environments after a chaos run: one JupyterLab on one box, the same all the time, nothing torn. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.checker import FINAL, Findings

Fact = Mapping[str, Any]
ENDS = frozenset({"stopped"})
SEEN_S = 60.0  # the platform looks every 20 s, and is killed meanwhile: what ended sooner it need not have seen ready
STRUCK_ENDS = frozenset({"stopped", "failed", "lost"})


@dataclass(frozen=True)
class Lodging:
    """One environment as database and files know it.

    Attributes:
        labs: of each attempt the words of the JupyterLabs that began in it.
        struck: attempts of which a process was killed.
        closed: attempts whose exec server was killed: they go on, and nobody can enter them any more.
        ready: attempt that its row says was seen ready; 0 for none.
        open_sessions: SSH sessions that are not ended.
        ended: unix seconds at which attempts ended.
    """

    job: int
    name: str
    state: str
    labs: Mapping[int, Sequence[str]]
    struck: frozenset[int] = frozenset()
    closed: frozenset[int] = frozenset()
    live: Sequence[int] = ()
    ready: int = 0
    open_sessions: int = 0
    ended: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Saved:
    """One saved image. `whole`: its file is there with its digest, and every note in it is what its name says."""

    image: int
    job: int
    state: str
    message: str = ""
    whole: bool = True
    notes: frozenset[str] = field(default_factory=frozenset)


def check(
    facts: Iterable[Fact], lodgings: Iterable[Lodging], images: Iterable[Saved], parts: Iterable[str], found: Findings
) -> None:
    """Add to `found` what does not hold.

    Args:
        parts: files that savers left behind unfinished.
    """
    by_kind: dict[str, list[Fact]] = {}
    for fact in facts:
        by_kind.setdefault(fact["kind"], []).append(fact)
    rows = {row.job: row for row in lodgings}
    _asked(by_kind, rows, found)
    for row in rows.values():
        _lived(row, found)
    _entered(by_kind, rows, found)
    _kept(by_kind, found)
    for image in images:
        if image.state not in {"ready", "failed"}:
            found.add("stuck", f"image {image.image} of job {image.job} is {image.state} for ever")
        if image.state == "ready" and not image.whole:
            found.add("bytes", f"image {image.image} of job {image.job} is called ready and is not whole")
        if image.state == "failed" and not image.message:
            found.add("silent", f"image {image.image} of job {image.job} failed without a reason")
    for part in parts:
        found.add("orphans", f"an unfinished file was left: {part}")


def _asked(by_kind: Mapping[str, Sequence[Fact]], rows: Mapping[int, Lodging], found: Findings) -> None:
    """One request made one environment; one that was refused made none."""
    answers = {fact["name"]: fact for fact in by_kind.get("lodged", ())}
    made: dict[str, list[int]] = {}
    for row in rows.values():
        made.setdefault(row.name, []).append(row.job)
    for fact in by_kind.get("lodge", ()):
        name, jobs = fact["name"], made.get(fact["name"], [])
        answer = answers.get(name)
        if len(jobs) > 1:
            found.add("twice", f"one request made environments {jobs}")
        if answer is None or not answer["status"]:
            found.add("stuck", f"the request of {name} did not come to an end")
        elif answer["status"] >= 400:
            found.add("wrong", f"{name} was refused with {answer['status']}: {answer.get('text', '')}")
        elif answer["job"] not in jobs:
            found.add("lost", f"{name} was accepted as job {answer['job']} and is {jobs}")


def _lived(row: Lodging, found: Findings) -> None:
    about = f"environment {row.job}"
    if row.state not in FINAL or row.live:
        found.add("lost", f"{about} never ended, it is {row.state}, attempts {list(row.live)} live")
    elif row.state not in (STRUCK_ENDS if row.struck else ENDS):
        found.add("wrong", f"{about} ended {row.state} though nobody killed anything of it")
    for attempt, labs in row.labs.items():
        if len(labs) > 1:
            found.add("twice", f"{about} attempt {attempt}: {len(labs)} JupyterLabs began")
        if attempt > 1 and attempt - 1 not in row.struck:
            found.add("wrong", f"{about} attempt {attempt} began though nothing of {attempt - 1} was killed")
    if row.open_sessions:
        found.add("stuck", f"{about}: {row.open_sessions} SSH sessions stayed open behind it")


def _entered(by_kind: Mapping[str, Sequence[Fact]], rows: Mapping[int, Lodging], found: Findings) -> None:
    """Whoever was let in met the JupyterLab of that environment, and could come in again at the end."""
    for fact in by_kind.get("kernel", ()):
        row = rows.get(fact["job"])
        if row is None or fact["mine"] not in row.labs.get(fact["attempt"], ()):
            found.add("wrong", f"environment {fact['job']}: by {fact['way']} somebody met {fact['mine']}, not its own")
        elif (
            row.ready < fact["attempt"]
            and row.state == "stopped"
            and row.ended.get(fact["attempt"], math.inf) - fact["at"] > SEEN_S
        ):
            found.add("wrong", f"environment {fact['job']} answered in attempt {fact['attempt']}, its row says never")
    for fact in by_kind.get("shut_out", ()):
        row = rows.get(fact["job"])
        if row is None or max(row.labs, default=0) not in row.closed:
            found.add("stuck", f"environment {fact['job']} runs and does not let in by {fact['ways']}")


def _kept(by_kind: Mapping[str, Sequence[Fact]], found: Findings) -> None:
    """What was written into a box and acknowledged is there later, and nothing in it is half-written."""
    known: dict[int, set[str]] = {}
    for fact in sorted([*by_kind.get("note", ()), *by_kind.get("notes", ())], key=lambda fact: float(fact["at"])):
        job = fact["job"]
        if fact["kind"] == "note":
            known.setdefault(job, set()).add(fact["note"])
            continue
        if missing := known.get(job, set()) - set(fact["notes"]):
            found.add("lost", f"environment {job}: {len(missing)} of {len(known[job])} notes are gone from its box")
        if fact["broken"]:
            found.add("bytes", f"environment {job}: {len(fact['broken'])} notes in its box are not what was written")
