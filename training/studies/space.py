"""What a study searches: the range of each parameter, as rows and lines keep it. Pure; knows no sampler.

A line says a range as people write it:

    lr = 1e-5 .. 1e-1 log        a number, searched by its magnitude
    layers = 1 .. 8              a whole number, for both ends are
    width = 32 .. 224 step 32    every 32nd
    optimizer = adam, sgd        one of these
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError, Refusals

Value = bool | int | float | str
Row = Mapping[str, Any]

FLOAT, INT, CHOICE = "float", "int", "categorical"
MAX_RANGES, MAX_CHOICES, LONGEST = 30, 50, 2000
MAX_ON_GRID = 1000
DEFAULT_POINTS = 5  # of a range on a grid, where nobody says how many
BIGGEST = 2**53  # whole numbers beyond are none for samplers, which compute in floats
_WHOLE = re.compile(r"[+-]?\d+\Z")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z")
_LABELS = {"true": True, "false": False}


class BadRange(DomainError, code="bad_range", status=400, field="space"):
    """A range that is none, or that its parameter cannot have."""


@dataclass(frozen=True)
class Range:
    """What one parameter may be.

    Attributes:
        kind: "float", "int" or "categorical".
        low, high: of numbers, both included.
        step: distance of two neighbours; 0: any number, or every whole one.
        log: searched by its magnitude.
        choices: of a categorical one.
        points: how many values of it a grid has; 0 is five, or all where there are fewer.
    """

    name: str
    kind: str
    low: float = 0.0
    high: float = 0.0
    step: float = 0.0
    log: bool = False
    choices: tuple[Value, ...] = ()
    points: int = 0

    def as_row(self) -> dict[str, Any]:
        """What a row and an answer of the API hold of it."""
        if self.kind == CHOICE:
            return {"name": self.name, "type": CHOICE, "choices": list(self.choices)}
        ends = {"low": self._typed(self.low), "high": self._typed(self.high)}
        row: dict[str, Any] = {"name": self.name, "type": self.kind, **ends, "log": self.log}
        return (
            row
            | ({"step": self._typed(self.step)} if self.step else {})
            | ({"points": self.points} if self.points else {})
        )

    def _typed(self, number: float) -> float | int:
        return int(number) if self.kind == INT else float(number)

    def __str__(self) -> str:
        if self.kind == CHOICE:
            return f"{self.name} = {', '.join(_word(choice) for choice in self.choices)}"
        ends = f"{self._typed(self.low)} .. {self._typed(self.high)}"
        suffix = (" log" if self.log else "") + (f" step {self._typed(self.step)}" if self.step else "")
        return f"{self.name} = {ends}{suffix}"

    def read(self, value: Any, *, field: str = "space") -> Value:
        """Return a value of this range with its type.

        Raises:
            BadRange: it lies outside.
        """
        if self.kind == CHOICE:
            for choice in self.choices:
                if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                    return choice
            choices = ", ".join(_word(option) for option in self.choices)
            raise BadRange(
                _("%(name)s must be one of %(choices)s.") % {"name": self.name, "choices": choices}, field=field
            )
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        good = good and self.low <= value <= self.high and (self.kind == FLOAT or value == int(value))
        if good and self.step:
            steps = (value - self.low) / self.step
            good = abs(steps - round(steps)) < 1e-8 * max(1.0, abs(steps))
        if not good:
            facts = {"value": str(value)[:40], "range": self}
            raise BadRange(_("%(value)s is not a value of %(range)s.") % facts, field=field)
        return self._typed(value)

    def middle(self) -> Value:
        """A value in its middle, to check a request with."""
        return self.on_grid(3)[1] if self.kind != CHOICE and self.low < self.high else self.on_grid(1)[0]

    def on_grid(self, points: int = 0) -> list[Value]:
        """Return the values of a grid, spaced evenly or logarithmically.

        Args:
            points: in place of its own.
        """
        if self.kind == CHOICE:
            return list(self.choices)
        least = self.step or (1 if self.kind == INT else 0)
        count = points or self.points or DEFAULT_POINTS
        if least:
            available = int((self.high - self.low) / least + 1e-9) + 1
            count = min(count, available)
        if count == 1 or self.low == self.high:
            return [self._typed(self.low)]
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        spread = [low + (high - low) * index / (count - 1) for index in range(count)]
        values = [math.exp(value) for value in spread] if self.log else spread
        if least:
            values = [self.low + round((value - self.low) / least) * least for value in values]
        return list(dict.fromkeys(self._typed(min(max(value, self.low), self.high)) for value in values))


def read(entries: Iterable[Any]) -> list[Range]:
    """Return the ranges of a request, which are rows or lines as users write them.

    Raises:
        BadRange: with everything that is wrong.
    """
    refusals, ranges = Refusals(), []
    rows = list(entries)
    with refusals:
        if not rows:
            raise BadRange(_("Enter a range for at least one parameter, such as 0.001 .. 0.1 log for a learning rate."))
        if len(rows) > MAX_RANGES:
            raise BadRange(_("Search at most %(most)s parameters.") % {"most": MAX_RANGES})
    for row in rows[:MAX_RANGES]:
        with refusals:
            ranges.append(_of_line(row) if isinstance(row, str) else of_row(row))
    names = [dimension.name for dimension in ranges]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        with refusals:
            raise BadRange(_("Duplicate parameter %(name)s.") % {"name": name})
    refusals.end()
    return ranges


def of_row(row: Any) -> Range:
    """A range as a row says it.

    Raises:
        BadRange: it says none.
    """
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str):
        raise BadRange(_("A range requires a name, and two ends or choices."))
    name = row["name"].strip()
    if not name.isprintable() or not 0 < len(name) <= 100:
        raise BadRange(_("A parameter name must have 1 to 100 printable characters."))
    unknown = sorted(set(row) - {"name", "type", "low", "high", "step", "log", "choices", "points"}, key=str)
    if unknown:
        facts = {"name": name, "field": str(unknown[0])[:40]}
        raise BadRange(_("%(name)s: a range has no %(field)s.") % facts)
    kind = row.get("type") or (CHOICE if row.get("choices") else _kind_of(row.get("low"), row.get("high")))
    if kind == CHOICE:
        return _choices(name, row.get("choices"))
    if kind not in (FLOAT, INT):
        raise BadRange(_("%(name)s: the type must be float, int or categorical.") % {"name": name})
    numbers = [_number(row.get(end)) for end in ("low", "high")]
    step, points, log = _number(row.get("step") or 0), row.get("points") or 0, row.get("log", False)
    if None in (*numbers, step) or not isinstance(log, bool) or not _is_whole(points) or not 0 <= points <= 100:
        raise BadRange(_("%(name)s: enter two ends, such as %(name)s = 1 .. 8.") % {"name": name})
    return _checked(Range(name, kind, numbers[0] or 0.0, numbers[1] or 0.0, step or 0.0, log, (), int(points)))


def _kind_of(*ends: Any) -> str:
    return INT if all(_is_whole(end) for end in ends) else FLOAT


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _checked(dimension: Range) -> Range:
    message = ""
    if dimension.low > dimension.high:
        message = _("%(name)s: the first end exceeds the second.")
    elif dimension.kind == INT and any(
        end != int(end) or abs(end) > BIGGEST for end in (dimension.low, dimension.high, dimension.step)
    ):
        message = _("%(name)s: both ends and the step must be integers.")
    elif dimension.step < 0 or (dimension.step and dimension.step > dimension.high - dimension.low):
        message = _("%(name)s: the step must be positive and fit between the ends.")
    elif dimension.log and dimension.low <= 0:
        message = _("%(name)s: a logarithmic range must be positive.")
    elif dimension.log and dimension.step:
        message = _("%(name)s: use either a step or a logarithmic scale.")
    elif not math.isfinite(dimension.high - dimension.low):
        message = _("%(name)s: the range is too large.")
    if message:
        raise BadRange(message % {"name": dimension.name})
    if dimension.step:  # the last value that a step reaches is the end
        high = dimension.low + math.floor((dimension.high - dimension.low) / dimension.step + 1e-9) * dimension.step
        return Range(
            dimension.name, dimension.kind, dimension.low, high, dimension.step, dimension.log, (), dimension.points
        )
    return dimension


def _choices(name: str, values: Any) -> Range:
    if not isinstance(values, Sequence) or isinstance(values, str) or not 0 < len(values) <= MAX_CHOICES:
        message = _("%(name)s: enter 1 to %(most)s choices.") % {"name": name, "most": MAX_CHOICES}
        raise BadRange(message)
    for value in values:
        good = isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
        too_much = (isinstance(value, str) and (len(value) > LONGEST or "\0" in value)) or (
            isinstance(value, int) and abs(value) > 2**63
        )
        if not good or too_much:
            raise BadRange(_("%(name)s: choices must be numbers, short texts, true or false.") % {"name": name})
    if len({(type(value) is bool, value) for value in values}) < len(values):
        raise BadRange(_("%(name)s: duplicate choice.") % {"name": name})
    return Range(name, CHOICE, choices=tuple(values))


def _of_line(line: str) -> Range:
    name, _sign, text = line.partition("=")
    name, text = name.strip(), text.strip()
    if not name or not text:
        raise BadRange(_("“%(line)s” is not a range. Write it as lr = 0.001 .. 0.1 log.") % {"line": line[:60]})
    low, colon, high = text.partition(":")
    if colon and _NUMBER.match(low.strip()) and _NUMBER.match(high.strip()):
        example = {"name": name, "low": low.strip(), "high": high.strip()}
        raise BadRange(_("%(name)s: write the range as %(name)s = %(low)s .. %(high)s.") % example)
    if ".." not in text:
        return of_row({"name": name, "choices": [_value(word.strip()) for word in text.split(",") if word.strip()]})
    low, _dots, tail = text.partition("..")
    high, *options = tail.replace(":", " ").replace("=", " ").split() or [""]
    row: dict[str, Any] = {"name": name, "low": _value(low.strip()), "high": _value(high)}
    while options:
        word = options.pop(0).lower()
        if word == "log":
            row["log"] = True
        elif word in (FLOAT, INT):
            row["type"] = word
        elif word in ("step", "points") and options:
            row[word] = _value(options.pop(0))
        else:
            message = _("%(name)s: a range can be followed by log, step 2, points 5, float or int.") % {"name": name}
            raise BadRange(message)
    if isinstance(row.get("step"), float) and "type" not in row:
        row["type"] = FLOAT
    return of_row(row)


def _value(word: str) -> Value:
    if _WHOLE.match(word):
        return int(word)
    if _NUMBER.match(word):
        return float(word)
    return _LABELS.get(word.lower(), word)


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def grid_size(ranges: Sequence[Range]) -> int:
    """Return the number of points of the grid."""
    return math.prod(len(dimension.on_grid()) for dimension in ranges)


def read_values(
    ranges: Sequence[Range], params: Mapping[str, Any], *, require_all: bool = False, field: str = "params"
) -> dict[str, Value]:
    """Return values of some of the parameters with their types.

    Args:
        whole: all of them have to be given.

    Raises:
        BadRange: unknown, outside of its range, or missing.
    """
    dimensions, refusals, values = {dimension.name: dimension for dimension in ranges}, Refusals(), {}
    for name, value in params.items():
        with refusals:
            if name not in dimensions:
                facts = {"name": str(name)[:60], "names": ", ".join(dimensions)}
                raise BadRange(_("%(name)s is not part of the search. Available: %(names)s.") % facts, field=field)
            values[name] = dimensions[name].read(value, field=field)
    missing = [name for name in dimensions if name not in params]
    with refusals:
        if require_all and missing:
            raise BadRange(_("Enter %(names)s as well.") % {"names": ", ".join(missing)}, field=field)
    refusals.end()
    return values


def of_rows(rows: Iterable[Row]) -> list[Range]:
    """The ranges that a row of a study keeps."""
    return [
        Range(
            row["name"], row["type"], row.get("low", 0), row.get("high", 0), row.get("step", 0), row.get("log", False),
            tuple(row.get("choices", ())), row.get("points", 0),
        )
        for row in rows
    ]  # fmt: skip
