"""Parse untrusted JSON: what would break a database or the parser is refused as a bad request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from aiplatform.lib.queries import UNSTORABLE

MAX_DEPTH = 64


def _check(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ParseError(_("This JSON is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH})
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            raise ParseError(_("Text may not contain NUL or half of a surrogate pair."))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check(key, depth + 1)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, int | float):  # long lists are numbers: coordinates
                _check(item, depth + 1)


class CarefulJSONParser(JSONParser):
    """Strict JSON without NaN, without NUL, at most 64 levels deep."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError as exc:
            raise ParseError(_("This JSON is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH}) from exc
        _check(data)
        return data
