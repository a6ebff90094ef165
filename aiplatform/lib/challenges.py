"""Parse the `WWW-Authenticate` header of a foreign server."""

from __future__ import annotations

import re

MAX_LENGTH = 8192  # characters of one challenge that are read
_PARAMETER = re.compile(r'(?<!\w)(\w+)="([^"]*)"')  # begins at a word, so that each word is read once


def parse_challenge(header: str) -> tuple[str, dict[str, str]]:
    """Return the scheme in small letters and the quoted parameters."""
    scheme, _space, rest = header[:MAX_LENGTH].partition(" ")
    return scheme.lower(), dict(_PARAMETER.findall(rest))
