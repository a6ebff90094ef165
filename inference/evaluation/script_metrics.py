"""Read `metrics.json`, the metrics of a custom script: `{name: number}`, or `{name: {name: number}}`.

A custom program wrote it, so sizes, names and numbers are bounded, and all errors are reported at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message, message

FILE = "metrics.json"
MAX_BYTES = 1 << 20
MAX_METRICS = 1000  # numbers
MAX_LENGTH = 100  # characters of a name
MAX_REPORTED = 20  # problems that are named one by one
APART = "/"  # between the two names of a figure of a part: recall/cat
Rows = list[list[Any]]


@dataclass
class ScriptMetrics:
    """What the file holds.

    Attributes:
        rows: name and number, or name and such rows, in the order of the file.
        problems: what is wrong with it; then none of the figures count.
    """

    rows: Rows = field(default_factory=list)
    problems: list[Message] = field(default_factory=list)


def flat(rows: Rows) -> dict[str, float]:
    """Return all numbers by name, those of nested tables as OUTER/INNER."""
    numbers: dict[str, float] = {}
    for name, value in rows:
        if isinstance(value, list):
            numbers |= {f"{name}{APART}{part}": number for part, number in value}
        else:
            numbers[name] = value
    return numbers


def read_outputs(outputs: Path) -> ScriptMetrics:
    """Read the metrics in the outputs of a job."""
    try:
        with os.fdopen(files.open_beneath(outputs, FILE), "rb") as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, files.OutsideRoot):
        return ScriptMetrics(problems=[message("own_script.no_figures", name=FILE)])
    return read(text)


def read(text: bytes) -> ScriptMetrics:
    """Parse the text of the file."""
    if len(text) > MAX_BYTES:
        return ScriptMetrics(problems=[message("own_script.too_large", name=FILE, most=MAX_BYTES >> 10)])
    try:
        content = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as exc:
        return ScriptMetrics(problems=[message("own_script.no_json", name=FILE, error=_shorten(str(exc)))])
    if not isinstance(content, _Pairs):
        return ScriptMetrics(problems=[message("own_script.no_table", name=FILE)])
    result = ScriptMetrics()
    problems = list(_collect(content, result.rows))
    if not flat(result.rows) and not problems:
        problems = [message("own_script.empty", name=FILE)]
    more = len(problems) - MAX_REPORTED
    result.problems = problems[:MAX_REPORTED] + ([message("own_script.more", count=more)] if more > 0 else [])
    return result


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with its names in order, also those that stand there twice."""


def _collect(content: _Pairs, rows: Rows) -> Iterator[Message]:
    """Fill the rows; yields what is wrong."""
    if (count := sum(len(value) if isinstance(value, _Pairs) else 1 for _name, value in content)) > MAX_METRICS:
        yield message("own_script.too_many", count=count, most=MAX_METRICS)
        return
    taken: set[str] = set()
    for name, value in content:
        if not isinstance(value, _Pairs):
            yield from _one(name, value, name, taken, rows)
            continue
        inner: Rows = []
        for part, number in value:
            yield from _one(part, number, f"{name}{APART}{part}", taken, inner)
        if _is_odd(name):
            yield message("own_script.odd_name", name=_shorten(name), most=MAX_LENGTH)
        if inner:
            rows.append([name, inner])


def _one(name: str, value: Any, full_name: str, taken: set[str], rows: Rows) -> Iterator[Message]:
    """Add a number to the rows, or yield what is wrong with it."""
    number = finite(value)
    if _is_odd(name):
        yield message("own_script.odd_name", name=_shorten(name), most=MAX_LENGTH)
    elif isinstance(value, list | _Pairs):
        yield message("own_script.too_deep", name=_shorten(full_name))
    elif number is None:
        yield message("own_script.no_number", name=_shorten(full_name), value=_shorten(json.dumps(value)))
    elif full_name in taken:
        yield message("own_script.twice", name=_shorten(full_name))
    else:
        taken.add(full_name)
        rows.append([name, number])


def _is_odd(name: str) -> bool:
    return not name.strip() or len(name) > MAX_LENGTH or not name.isprintable()


def _shorten(text: str) -> str:
    printable = "".join(char if char.isprintable() else "?" for char in text[:61])
    return f"{printable[:60]}…" if len(text) > 60 else printable


def format_number(value: float) -> str:
    """Format a number for lists: three decimals, counts and other large numbers without more than they have."""
    return f"{value:.6g}" if abs(value) > 1 else f"{value:.3f}"
