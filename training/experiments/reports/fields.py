"""Values of the fields of a panel, as YAML gives them: read strictly, refused with what would do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

LONGEST_FILTER, LONGEST_COLUMN, LONGEST_TITLE = 2000, 300, 150
_COLUMN = re.compile(r"(last|min|max|best)\(.+\)\Z|(params|tags)\..+\Z")

Read = Callable[[Any], Any]


def text(max_length: int) -> Read:
    """Text of at most `max_length` characters."""

    def read(value: Any) -> str:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise Invalid(_("must be a text"))
        if len(str(value)) > max_length:
            raise Invalid(_("must have at most %(most)s characters") % {"most": max_length})
        return str(value).strip()

    return read


def words(max_count: int) -> Read:
    """A list of names, or one name."""
    read_name = text(LONGEST_COLUMN)

    def read(value: Any) -> tuple[str, ...]:
        rows = value if isinstance(value, list) else [value]
        if not 0 < len(rows) <= max_count:
            raise Invalid(_("must be a list of 1 to %(most)s names, as [a, b]") % {"most": max_count})
        return tuple(dict.fromkeys(read_name(row) for row in rows))

    return read


def numbers(max_count: int) -> Read:
    """A list of numbers of runs, or one."""
    read_number = integer(1, 10**12)

    def read(value: Any) -> tuple[int, ...]:
        rows = value if isinstance(value, list) else [value]
        if not 0 < len(rows) <= max_count:
            raise Invalid(_("must be a list of 1 to %(most)s run numbers, as [12, 15]") % {"most": max_count})
        return tuple(dict.fromkeys(read_number(row) for row in rows))

    return read


def integer(minimum: int, maximum: int) -> Read:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise Invalid(_("must be an integer from %(least)s to %(most)s") % {"least": minimum, "most": maximum})
        return value

    return read


def share(maximum: float) -> Read:
    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= maximum:
            raise Invalid(_("must be a number from 0 to %(most)s") % {"most": maximum})
        return float(value)

    return read


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid(_("must be true or false"))
    return value


def one_of(*choices: str) -> Read:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise Invalid(_("must be one of %(words)s") % {"words": ", ".join(choices)})
        return value

    return read


def number_column(value: Any) -> str:
    """A column with numbers: a figure or a parameter; the bare name of a figure is its newest value."""
    name: str = text(LONGEST_COLUMN)(value)
    if name in ("duration", "cards") or _COLUMN.match(name):
        return name
    return f"last({name})"
