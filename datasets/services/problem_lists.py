"""Every problem and note of an import, as a file next to its plan and later its version, and as CSV for users.

A line of the file is a problem as code and facts; the sentences of the CSV are made on request.
"""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from django.utils import translation

from aiplatform.lib import tables
from aiplatform.lib.files import atomic_writer
from aiplatform.lib.wording import Message
from datasets.formats.problems import Problem, Problems

NAME = "problems.jsonl"
OLD_NAME = "problems.csv"  # as imports of before wrote it: with English sentences
HEADER = ["path", "code", "level", "count", "message"]
_BATCH = 500


def write(folder: Path, problems: Problems) -> None:
    """Write the problems: those that forbid the import first, notes last."""
    ordered = [*problems.first(len(problems.listed)), *problems.noted]
    with atomic_writer(folder / NAME, "w") as out:
        for problem in ordered:
            out.write(json.dumps(_to_row(problem)) + "\n")


def _to_row(problem: Problem) -> list[Any]:
    return [problem.path, problem.code, problem.level, problem.count, problem.says.as_json()]


def as_csv(lines: Iterable[bytes], language: str) -> Generator[bytes, None, None]:
    """The lines of the file as CSV for spreadsheets, with sentences in `language`."""
    yield _csv(tables.BOM, [HEADER])
    waiting = iter(lines)
    while some := list(islice(waiting, _BATCH)):
        with translation.override(language):  # a stream is read when its request is over
            block = _csv("", ((*facts, Message.from_json(says)) for *facts, says in map(json.loads, some)))
        yield block


def _csv(before: str, rows: Iterable[Iterable[object]]) -> bytes:
    out = io.StringIO()
    out.write(before)
    tables.write_rows(out, rows)
    return out.getvalue().encode(errors="replace")
