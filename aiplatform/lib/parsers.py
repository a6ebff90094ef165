"""Parse untrusted JSON: what would break a database or a calculation is refused with its place in the body."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser, MultiPartParser

from aiplatform.lib.queries import UNSTORABLE

MAX_DEPTH = 64
MAX_CONTAINERS = 200_000  # brackets in a body: each list or object takes as long to make as many characters of text
MAX_INTEGER = 2**63 - 1  # of whole numbers, in every database we speak to
_DIGITS = len(str(MAX_INTEGER)) + 1  # with a sign
_TOO_LARGE = float("inf")
_LONG_NUMBER = re.compile(rf"\d{{{_DIGITS}}}")  # shorter whole numbers, which fit, are read without a call of ours
_KINDS = {str, int, float, bool, type(None), list, dict}


def _is_clean(value: Any) -> bool:
    """Whether `_faults` finds nothing. Looks at all values of one depth together, ten times as fast as one by one."""
    level = [value]
    for _depth in range(MAX_DEPTH + 1):
        kinds = set(map(type, level))
        if not kinds <= _KINDS:
            return False
        if str in kinds and UNSTORABLE.search("".join([item for item in level if type(item) is str])):
            return False
        if float in kinds and not all(map(math.isfinite, [item for item in level if type(item) is float])):
            return False
        if int in kinds and not _fit([item for item in level if type(item) is int]):
            return False
        tables = [item for item in level if type(item) is dict] if dict in kinds else []
        if tables and UNSTORABLE.search("".join([key for table in tables for key in table])):
            return False
        below: list[Iterable[Any]] = [table.values() for table in tables]
        below += [item for item in level if type(item) is list] if list in kinds else []
        level = list(chain.from_iterable(below))
        if not level:
            return True
    return False


def _fit(numbers: list[int]) -> bool:
    return min(numbers) >= -MAX_INTEGER - 1 and max(numbers) <= MAX_INTEGER


def _parse_int(digits: str) -> int | float:
    """Return a whole number; infinity for one that no column holds, without the cost of parsing it."""
    return int(digits) if len(digits) <= _DIGITS else _TOO_LARGE


def _holds(number: float) -> bool:
    """Whether a number is finite and, if whole, fits a column; NaN compares as false with everything."""
    return -MAX_INTEGER - 1 <= number <= MAX_INTEGER or (isinstance(number, float) and abs(number) < _TOO_LARGE)


def _faults(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (path, message) of values that the code after the parser cannot process."""
    if depth > MAX_DEPTH:
        raise ParseError(_("This JSON is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH})
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            yield path, _("Text may not contain NUL or half of a surrogate pair.")
    elif isinstance(value, int | float):
        if not _holds(value):
            yield path, _("This number is too large, or no number.")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            name = UNSTORABLE.sub("\ufffd", key[:100])
            if UNSTORABLE.search(key):
                yield f"{path}.{name}".lstrip("."), _("Text may not contain NUL or half of a surrogate pair.")
            yield from _faults(item, f"{path}.{name}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not (isinstance(item, int | float) and _holds(item)):  # long lists are numbers: coordinates
                yield from _faults(item, f"{path}.{index}".lstrip("."), depth + 1)


def check(value: Any) -> None:
    """Refuse values that no database stores or no calculation can use.

    Raises:
        ParseError: it is nested too deep.
        ValidationError: the place of each fault ("params.rings.3"; "" is the whole), at most twenty of them.
    """
    if _is_clean(value):
        return
    errors: dict[str, list[str]] = {}
    for path, sentence in _faults(value):
        errors.setdefault(path or "non_field_errors", [sentence])
        if len(errors) == 20:
            break
    if errors:
        raise ValidationError(errors)


def is_sound(value: Any) -> bool:
    """Return whether databases store a value and calculations can use it, for callers that report no error."""
    try:
        return _is_clean(value) or next(_faults(value), None) is None
    except ParseError:
        return False


class CarefulJSONParser(JSONParser):
    """Strict JSON: numbers are finite and fit 64 bits, text has no NUL, levels, lists and objects are bounded."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            text = stream.read().decode(encoding)  # knows encodings of text only: others unpack a bomb
            if text.count("[") + text.count("{") > MAX_CONTAINERS:
                message = _("This JSON holds more than %(most)s lists and objects.") % {"most": f"{MAX_CONTAINERS:,}"}
                raise ParseError(message)
            parse_int = _parse_int if _LONG_NUMBER.search(text) else None
            data = json.loads(text, parse_int=parse_int, parse_constant=float)
        except RecursionError as exc:
            raise ParseError(_("This JSON is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH}) from exc
        except (ValueError, LookupError) as exc:
            raise ParseError(_("This is not JSON: %(why)s") % {"why": str(exc)[:200]}) from exc
        check(data)
        return data


class CarefulMultiPartParser(MultiPartParser):
    """Forms whose fields have no NUL in names and values."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            parsed = super().parse(stream, media_type, parser_context)
        except UnicodeError as exc:
            raise ParseError(_("This is not text: %(why)s") % {"why": str(exc)[:200]}) from exc
        check(dict(parsed.data.lists()))
        return parsed
