"""Calls as the description of the API has them, and its lists."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import get_resolver

from tests.routes import PUBLIC, routes


def query_of(given: dict[str, Any]) -> str:
    pairs = [(name, str(value).encode("utf-8", "surrogatepass")) for name, value in given.items()]
    return urlencode(pairs)


def lists() -> list[str]:
    """Every address of the API without an id that answers GET."""
    found = []
    for path, pattern in routes(get_resolver().url_patterns):
        clean = path.replace("^", "").replace("$", "").replace("\\Z", "")
        takes = (getattr(pattern.callback, "actions", None) or {"get": ""}).keys()
        plain = clean.startswith("api/v1/") and "<" not in clean and "(" not in clean
        if plain and "get" in takes and pattern.name not in PUBLIC:
            found.append("/" + clean)
    return sorted(set(found))
