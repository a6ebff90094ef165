"""Output: tables for people or JSON for programs on stdout, messages on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Union

Column = tuple[str, Union[str, Callable[[Any], object]]]  # heading, key path or function of the row

HUES = {
    "running": "32", "succeeded": "32", "completed": "32", "finished_early": "32",
    "queued": "33", "assigned": "33", "starting": "33", "stopping": "33", "finishing": "33",
    "failed": "31", "lost": "31", "paused": "35", "preempting": "35", "stopped": "90",
}  # fmt: skip
CONTROL = dict.fromkeys((*range(32), *range(127, 160)))


def say(message: str) -> None:
    """Print a message on stderr, so that stdout stays clean for pipes."""
    print(message, file=sys.stderr, flush=True)


def coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def clean(value: object) -> str:
    """Remove control characters, so that names cannot steer the terminal."""
    return str(value).translate(CONTROL)


def width(text: str) -> int:
    """Columns a text takes in a terminal; East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def dig(row: Any, key: str) -> object:
    """`dig({"job": {"name": "x"}}, "job.name")` is "x"; missing steps give None."""
    for step in key.split("."):
        row = row.get(step) if isinstance(row, Mapping) else None
    return row


def ago(value: object, *, now: datetime | None = None) -> str:
    """An ISO time as "3 min ago", or "in 3 min"."""
    if not value:
        return ""
    try:
        then = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    seconds = ((now or datetime.now(timezone.utc)) - then).total_seconds()
    frame = "{} ago" if seconds >= 0 else "in {}"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if abs(seconds) >= size:
            return frame.format(f"{int(abs(seconds) // size)} {unit}")
    return frame.format(f"{int(abs(seconds))} s")


def duration(seconds: object) -> str:
    """Seconds as "1:02:03"."""
    if not isinstance(seconds, (int, float)):
        return ""
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def percent(share: object) -> str:
    """0.42 as "42 %"; "" where it is unknown."""
    return f"{100 * share:.0f} %" if isinstance(share, (int, float)) else ""


def progress(row: Mapping[str, Any]) -> str:
    """Phase, counter and share of the phase of a job: "Training 120/500 24 %"."""
    total = row.get("phase_total")
    count = f"{row.get('phase_done')}/{total}" if total else ""
    parts = (str(row.get("phase_label") or ""), count, percent(row.get("progress")))
    return " ".join(part for part in parts if part)


def phase_times(row: Mapping[str, Any]) -> str:
    """Time of each phase: "Training 0:02:00 (0:01:00 left), Evaluating 0:00:10"."""
    parts = []
    for one in row.get("phase_times") or ():
        left = f" ({duration(one['left_s'])} left)" if one.get("left_s") else ""
        parts.append(f"{one['name']} {duration(one['spent_s'])}{left}")
    return ", ".join(parts)


PROGRESS: list[Column] = [
    ("Progress", progress),
    ("Time left", lambda row: duration(row.get("eta_s"))),
    ("Time by phase", phase_times),
]


def size(value: object) -> str:
    """Bytes as "1.2 MB"."""
    if not isinstance(value, (int, float)):
        return ""
    number = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (dict, list)):
        return clean(json.dumps(value, ensure_ascii=False))
    return clean(value)


def cell(row: Any, column: Column) -> str:
    source = column[1]
    return text(dig(row, source) if isinstance(source, str) else source(row))


Format = Callable[[Any], object]
FORMATS: dict[str, Format] = {
    "ago": ago,
    "duration": duration,
    "size": size,
    "percent": percent,
    "progress": progress,
    "joined": lambda items: ", ".join(str(item) for item in items or ()),
    "mark": lambda value: "yes" if value else "",
}


def columns(text: str, /, **formats: Format) -> list[Column]:
    """Columns from a text such as `id, name, job name=job_name, made=created_at|ago, share=ratio|.3f`.

    A column is a heading, the path of its value where that differs, and the name of a format: one of FORMATS, one of
    `formats`, or a format specification of Python for numbers. Without a path the format gets the whole row.
    """
    return [_column(item.strip(), FORMATS | formats) for item in text.split(",")]


def _column(item: str, formats: Mapping[str, Format]) -> Column:
    heading, equals, source = item.partition("=")
    path, bar, name = (source if equals else heading).partition("|")
    heading = heading if equals else path
    if not bar:
        return heading, path
    return heading, Formatted(path, formats.get(name) or (lambda value: "" if value is None else format(value, name)))


@dataclass(frozen=True)
class Formatted:
    """A value of a row at a path, or the row itself, in a format."""

    path: str
    shape: Format

    def __call__(self, row: Any) -> object:
        try:
            return self.shape(dig(row, self.path) if self.path else row)
        except KeyError:  # an older platform does not report the field
            return ""


def titled(fields: Iterable[Column]) -> list[Column]:
    """Columns of a list as fields of one row: with a capital letter."""
    return [(heading.capitalize(), source) for heading, source in fields]


MIN_COLUMN = 12  # characters of a column that is cut


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Return widths that fit into a terminal, the widest made narrower first."""
    fitted = list(widths)
    while sum(fitted) > room and max(fitted) > MIN_COLUMN:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _cut(text: str, room: int) -> str:
    if width(text) <= room:
        return text
    while text and width(text) > room - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def table(rows: Iterable[Any], columns: Sequence[Column], *, empty: str = "Nothing here yet.") -> None:
    """Print rows in aligned columns; an empty list says so on stderr."""
    lines = [[cell(row, column) for column in columns] for row in rows]
    if not lines:
        say(empty)
        return
    heads = [column[0].upper() for column in columns]
    widths = [max(width(line[i]) for line in [heads, *lines]) for i in range(len(columns))]
    if sys.stdout.isatty():
        widths = _fitting(widths, shutil.get_terminal_size().columns - 2 * (len(widths) - 1))
        lines = [[_cut(value, widths[i]) for i, value in enumerate(line)] for line in lines]
    colour = coloured()
    for number, line in enumerate([heads, *lines]):
        shown = []
        for index, value in enumerate(line):
            padded = value + " " * (widths[index] - width(value)) if index < len(line) - 1 else value
            if colour and number == 0:
                padded = f"\033[2m{padded}\033[0m"
            elif colour and value in HUES:
                padded = f"\033[{HUES[value]}m{padded}\033[0m"
            shown.append(padded)
        print("  ".join(shown).rstrip())


def record(row: Mapping[str, Any], fields: Sequence[Column]) -> None:
    """Print one thing as "name: value" lines; empty values are left out."""
    lines = [(column[0], cell(row, column)) for column in fields]
    lines = [(name, value) for name, value in lines if value]
    longest = max((width(name) for name, _ in lines), default=0)
    for name, value in lines:
        print(f"{name}{' ' * (longest - width(name))}  {value}")


def as_json(value: object) -> None:
    """One JSON value on stdout; a list that is streamed is printed as a whole."""
    print(json.dumps(value, ensure_ascii=False, indent=2))
