"""Parse untrusted JSON: what would break a database or a calculation is refused with its place in the body."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser, MultiPartParser

from aiplatform.lib.queries import UNSTORABLE

MAX_DEPTH = 64
LARGEST = 2**63 - 1  # of whole numbers, in every database we speak to
_DIGITS = len(str(LARGEST)) + 1  # with a sign
_TOO_LARGE = float("inf")


def _whole(digits: str) -> int | float:
    """Return a whole number; one that no column holds as an infinite one, without the work of reading it."""
    return int(digits) if len(digits) <= _DIGITS else _TOO_LARGE


def _holds(number: float) -> bool:
    """Whether a number is finite and, if whole, fits a column; NaN compares as false with everything."""
    return -LARGEST - 1 <= number <= LARGEST or (isinstance(number, float) and abs(number) < _TOO_LARGE)


def _faults(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (place, sentence) of what nothing behind the parser can take."""
    if depth > MAX_DEPTH:
        raise ParseError(_("This JSON is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH})
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            yield place, _("Text may not contain NUL or half of a surrogate pair.")
    elif isinstance(value, int | float):
        if not _holds(value):
            yield place, _("This number is too large, or no number.")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            name = UNSTORABLE.sub("\ufffd", key[:100])
            if UNSTORABLE.search(key):
                yield f"{place}.{name}".lstrip("."), _("Text may not contain NUL or half of a surrogate pair.")
            yield from _faults(item, f"{place}.{name}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not (isinstance(item, int | float) and _holds(item)):  # long lists are numbers: coordinates
                yield from _faults(item, f"{place}.{index}".lstrip("."), depth + 1)


def check(value: Any) -> None:
    """Refuse what no database stores and no calculation survives.

    Raises:
        ParseError: it is nested too deep.
        ValidationError: the place of each fault ("params.rings.3"; "" is the whole), at most twenty of them.
    """
    found: dict[str, list[str]] = {}
    for place, sentence in _faults(value):
        found.setdefault(place or "non_field_errors", [sentence])
        if len(found) == 20:
            break
    if found:
        raise ValidationError(found)


def is_sound(value: Any) -> bool:
    """Whether databases store a value and calculations survive it, for what nobody is there to be told."""
    try:
        return next(_faults(value), None) is None
    except ParseError:
        return False


class CarefulJSONParser(JSONParser):
    """Strict JSON: numbers are finite and fit 64 bits, text has no NUL, at most 64 levels deep."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            text = stream.read().decode(encoding)  # knows encodings of text only: others unpack a bomb
            data = json.loads(text, parse_int=_whole, parse_constant=float)
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
