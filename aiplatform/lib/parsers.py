"""Parsers of untrusted JSON and form data.

Values that a database cannot store or a calculation cannot use (NUL, lone surrogates, NaN, infinity, integers of more
than 64 bits, deep nesting) are rejected, and the error names their path in the body.
"""

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

MAX_DEPTH = 64  # levels of nested lists and objects
MAX_CONTAINERS = 200_000  # "[" and "{" in a body: creating a list or object is far slower than reading a character
MAX_INTEGER = 2**63 - 1  # largest integer that all supported databases store
MAX_FAULTS = 20  # reported in one error
_MAX_DIGITS = len(str(MAX_INTEGER)) + 1  # including a sign
_TOO_LARGE = float("inf")
_LONG_NUMBER = re.compile(rf"\d{{{_MAX_DIGITS}}}")  # a body without one is parsed without calling `_parse_int`
_JSON_TYPES = {str, int, float, bool, type(None), list, dict}


def _is_clean(value: Any) -> bool:
    """Return whether `_iter_faults` would yield nothing.

    Checks all values of a nesting level together, which is ten times as fast as one by one. Exact for the types that a
    JSON parser returns; for other types it returns False, and `_iter_faults` decides.
    """
    level = [value]
    for _depth in range(MAX_DEPTH + 1):
        types = set(map(type, level))
        if not types <= _JSON_TYPES:
            return False
        if str in types and UNSTORABLE.search("".join([item for item in level if type(item) is str])):
            return False
        if float in types and not all(map(math.isfinite, [item for item in level if type(item) is float])):
            return False
        if int in types and not _are_storable([item for item in level if type(item) is int]):
            return False
        objects = [item for item in level if type(item) is dict] if dict in types else []
        if objects and UNSTORABLE.search("".join([key for item in objects for key in item])):
            return False
        children: list[Iterable[Any]] = [item.values() for item in objects]
        children += [item for item in level if type(item) is list] if list in types else []
        level = list(chain.from_iterable(children))
        if not level:
            return True
    return False


def _are_storable(numbers: list[int]) -> bool:
    return min(numbers) >= -MAX_INTEGER - 1 and max(numbers) <= MAX_INTEGER


def _parse_int(digits: str) -> int | float:
    """Parse an integer; return infinity for one with too many digits, because parsing it would be slow."""
    return int(digits) if len(digits) <= _MAX_DIGITS else _TOO_LARGE


def _is_storable(number: float) -> bool:
    """Return whether a number is finite and, if it is an integer, fits 64 bits; all comparisons with NaN are False."""
    return -MAX_INTEGER - 1 <= number <= MAX_INTEGER or (isinstance(number, float) and abs(number) < _TOO_LARGE)


def _iter_faults(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (path, message) of each value that cannot be stored or calculated with.

    Raises:
        ParseError: `value` is nested deeper than `MAX_DEPTH`.
    """
    if depth > MAX_DEPTH:
        raise ParseError(_("The JSON is nested more than %(depth)s levels deep.") % {"depth": MAX_DEPTH})
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            yield path, _("Text must not contain NUL or unpaired surrogates.")
    elif isinstance(value, int | float):
        if not _is_storable(value):
            yield path, _("The number is too large or invalid.")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            name = UNSTORABLE.sub("\ufffd", key[:100])
            if UNSTORABLE.search(key):
                yield f"{path}.{name}".lstrip("."), _("Text must not contain NUL or unpaired surrogates.")
            yield from _iter_faults(item, f"{path}.{name}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            # Numbers are checked here without a recursive call, because long lists hold coordinates.
            if not (isinstance(item, int | float) and _is_storable(item)):
                yield from _iter_faults(item, f"{path}.{index}".lstrip("."), depth + 1)


def check(value: Any) -> None:
    """Check that databases can store a value and calculations can use it.

    Raises:
        ParseError: `value` is nested too deep.
        ValidationError: {path: message} of the first `MAX_FAULTS` faults; a path is like "params.rings.3", or
            "non_field_errors" if the whole value is at fault.
    """
    if _is_clean(value):
        return
    errors: dict[str, list[str]] = {}
    for path, message in _iter_faults(value):
        errors.setdefault(path or "non_field_errors", [message])
        if len(errors) == MAX_FAULTS:
            break
    if errors:
        raise ValidationError(errors)


def is_sound(value: Any) -> bool:
    """Return whether `check` would accept a value."""
    try:
        return _is_clean(value) or next(_iter_faults(value), None) is None
    except ParseError:
        return False


class CarefulJSONParser(JSONParser):
    """Parses JSON and rejects what `check` rejects, and bodies with more than `MAX_CONTAINERS` lists and objects."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            text = stream.read().decode(encoding)  # `decode` refuses codecs such as zip, so no body expands
            if text.count("[") + text.count("{") > MAX_CONTAINERS:
                message = _("This JSON holds more than %(most)s lists and objects.") % {"most": f"{MAX_CONTAINERS:,}"}
                raise ParseError(message)
            parse_int = _parse_int if _LONG_NUMBER.search(text) else None
            data = json.loads(text, parse_int=parse_int, parse_constant=float)
        except RecursionError as exc:
            raise ParseError(_("The JSON is nested more than %(depth)s levels deep.") % {"depth": MAX_DEPTH}) from exc
        except (ValueError, LookupError) as exc:
            raise ParseError(_("Not valid JSON: %(why)s") % {"why": str(exc)[:200]}) from exc
        check(data)
        return data


class CarefulMultiPartParser(MultiPartParser):
    """Parses multipart forms and rejects NUL and lone surrogates in names and values of the fields."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            parsed = super().parse(stream, media_type, parser_context)
        except UnicodeError as exc:
            raise ParseError(_("Not text: %(why)s") % {"why": str(exc)[:200]}) from exc
        check(dict(parsed.data.lists()))
        return parsed
