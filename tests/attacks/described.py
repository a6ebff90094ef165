"""Calls as the description of the API has them."""

from __future__ import annotations

from typing import Any


def query_of(given: dict[str, Any]) -> str:
    from urllib.parse import urlencode

    pairs = [(name, str(value).encode("utf-8", "surrogatepass")) for name, value in given.items()]
    return urlencode(pairs)
