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


def text(most: int) -> Read:
    """Words, at most so many characters."""

    def read(value: Any) -> str:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise Invalid(_("it is a text"))
        if len(str(value)) > most:
            raise Invalid(_("it has at most %(most)s characters") % {"most": most})
        return str(value).strip()

    return read


def words(most: int) -> Read:
    """A list of names, or one name."""
    one = text(LONGEST_COLUMN)

    def read(value: Any) -> tuple[str, ...]:
        rows = value if isinstance(value, list) else [value]
        if not 0 < len(rows) <= most:
            raise Invalid(_("it is a list of 1 to %(most)s names, as [a, b]") % {"most": most})
        return tuple(dict.fromkeys(one(row) for row in rows))

    return read


def numbers(most: int) -> Read:
    """A list of numbers of runs, or one."""
    one = whole(1, 10**12)

    def read(value: Any) -> tuple[int, ...]:
        rows = value if isinstance(value, list) else [value]
        if not 0 < len(rows) <= most:
            raise Invalid(_("it is a list of 1 to %(most)s numbers of runs, as [12, 15]") % {"most": most})
        return tuple(dict.fromkeys(one(row) for row in rows))

    return read


def whole(least: int, most: int) -> Read:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Invalid(_("it is a whole number from %(least)s to %(most)s") % {"least": least, "most": most})
        return value

    return read


def share(most: float) -> Read:
    def read(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise Invalid(_("it is a number from 0 to %(most)s") % {"most": most})
        return float(value)

    return read


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid(_("it is true or false"))
    return value


def one_of(*known: str) -> Read:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise Invalid(_("it is one of %(words)s") % {"words": ", ".join(known)})
        return value

    return read


def number_column(value: Any) -> str:
    """A column with numbers: a figure or a parameter; the bare name of a figure is its newest value."""
    name: str = text(LONGEST_COLUMN)(value)
    if name in ("duration", "cards") or _COLUMN.match(name):
        return name
    return f"last({name})"
