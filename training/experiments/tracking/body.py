"""Bodies of calls, read with the care that untrusted JSON needs: each field by its type, refused by its name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from aiplatform.lib import parsers
from aiplatform.lib.errors import Invalid
from aiplatform.lib.queries import UNSTORABLE

MAX_BYTES = 8 << 20  # MLflow's own clients send at most one
MAX_ROWS = 2000
_LATEST_MS = 253_402_300_799_000  # the year 9999 ends
_ODD = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "-infinity": -math.inf, "-inf": -math.inf}
_TOO_LARGE = 2**62


@dataclass(frozen=True)
class Body:
    """The fields of a call, whether they came as JSON or in the address."""

    fields: Mapping[str, Any]

    def text(self, name: str, *, max_length: int = 5000, needed: bool = False) -> str:
        """Return a text field; "" if it is missing.

        Raises:
            Invalid: something else, too long, or not given and needed.
        """
        value = self.fields.get(name)
        if isinstance(value, bool) or not (value is None or isinstance(value, str | int)):
            raise Invalid(_("%(name)s must be a text.") % {"name": name}, field=name)
        text = "" if value is None else str(value)
        if needed and not text:
            raise Invalid(_("%(name)s is missing.") % {"name": name}, field=name)
        if len(text) > max_length:
            raise Invalid(
                _("%(name)s can have at most %(most)s characters.") % {"name": name, "most": max_length}, field=name
            )
        return text

    def integer(self, name: str, otherwise: int = 0) -> int:
        """Return a whole number, also if it was sent as text.

        Raises:
            Invalid: something else, or beyond 62 bits.
        """
        value = self.fields.get(name)
        if value is None or value == "":
            return otherwise
        if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isdecimal() and value.isascii():
            value = int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < _TOO_LARGE:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _TOO_LARGE:
            raise Invalid(_("%(name)s must be an integer.") % {"name": name}, field=name)
        return value

    def number(self, name: str) -> float:
        """A number; not a number and infinite ones come as text.

        Raises:
            Invalid: something else, or not given.
        """
        value = self.fields.get(name)
        if isinstance(value, str):
            if value.strip().lower() in _ODD:
                return _ODD[value.strip().lower()]
            try:
                value = float(value) if len(value) < 400 else None
            except ValueError:
                value = None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Invalid(_("%(name)s must be a number.") % {"name": name}, field=name)
        return float(value)

    def moment(self, name: str) -> datetime | None:
        """A moment, given in milliseconds since 1970; None where it is not, or is 0."""
        value = self.integer(name)
        if not 0 <= value <= _LATEST_MS:
            raise Invalid(_("%(name)s must be a time in milliseconds since 1970.") % {"name": name}, field=name)
        return datetime.fromtimestamp(value / 1000, UTC) if value else None

    def rows(self, name: str, *, max_rows: int = MAX_ROWS) -> list[Body]:
        """Return a list of objects; [] if it is missing.

        Raises:
            Invalid: something else, or too many.
        """
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            raise Invalid(_("%(name)s must be a list of objects.") % {"name": name}, field=name)
        if len(value) > max_rows:
            raise Invalid(
                _("%(name)s can have at most %(most)s entries.") % {"name": name, "most": max_rows}, field=name
            )
        return [Body(row) for row in value]

    def texts(self, name: str, *, max_rows: int = MAX_ROWS) -> list[str]:
        """Return a list of texts; [] if it is missing.

        Raises:
            Invalid: something else, or too many.
        """
        value = self.fields.get(name)
        if value is None:
            return []
        items = value if isinstance(value, list) else [value]
        if len(items) > max_rows or not all(
            isinstance(item, str | int) and not isinstance(item, bool) for item in items
        ):
            raise Invalid(_("%(name)s must be a list of texts.") % {"name": name}, field=name)
        return [str(item) for item in items]

    def pairs(self, name: str, *, max_rows: int = 100, max_length: int = 5000) -> dict[str, str]:
        """Return a list of {"key", "value"} as a dictionary; the last entry of a key counts."""
        rows = self.rows(name, max_rows=max_rows)
        return {row.text("key", max_length=250, needed=True): row.text("value", max_length=max_length) for row in rows}


def read(request: HttpRequest) -> Body:
    """Return the fields of a request: of its JSON body if there is one, else of its query string.

    Raises:
        Invalid: it is no JSON object, too large, or holds what no database stores.
    """
    if request.method in ("GET", "HEAD") or not request.body:
        lists = dict(request.GET.lists())
        fields: Any = {name: values if len(values) > 1 else values[0] for name, values in lists.items()}
    else:
        fields = _parsed(request.body)
    if not isinstance(fields, Mapping):
        raise Invalid(_("The body of a call must be a JSON object."))
    _check(fields)
    return Body(fields)


def _parsed(raw: bytes) -> Any:
    if len(raw) > MAX_BYTES:
        raise Invalid(_("A call can have at most %(most)s bytes. Split it.") % {"most": MAX_BYTES})
    try:
        return json.loads(raw.decode(), parse_int=_parse_int, parse_constant=str)
    except (ValueError, RecursionError):
        raise Invalid(_("The body of a call must be a JSON object.")) from None


def _parse_int(digits: str) -> int | str:
    return int(digits) if len(digits) < 20 else "too large"


def _check(value: Any, depth: int = 0) -> None:
    if depth > parsers.MAX_DEPTH:
        raise Invalid(_("The JSON is nested more than %(depth)s levels deep.") % {"depth": parsers.MAX_DEPTH})
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            raise Invalid(_("Text must not contain NUL or unpaired surrogates."))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check(key, depth + 1)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
