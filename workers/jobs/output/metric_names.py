"""Names of metrics: one rule for a program's own report, its files, MLflow and the API. Pure.

A name of any script is kept. One that no curve can have (control characters, quotes, too long) becomes a key with a
mark of the whole name: no metric is dropped, and no two become one.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

MAX_LENGTH = 60  # characters of the column
MAX_FILE_BYTES = 200  # of the name of a curve's file, in which other scripts take three to nine bytes a character
SYSTEM = "system/"  # what the platform measures itself
#: Quotes, angle brackets, commas and back slashes are left out: lists of keys, queries and markup use them.
_SIGNS = r"\w/@%()+:=#\[\]&|*~^!?$;"
_NAME = re.compile(rf"[{_SIGNS}][{_SIGNS}. -]{{0,59}}\Z")
_UNUSABLE = re.compile(rf"[^{_SIGNS}. -]+")
_MARK_LENGTH = 8


def is_name(text: str) -> bool:
    """Whether a curve may have this name."""
    return bool(_NAME.match(text)) and len(file_name(text)) <= MAX_FILE_BYTES


def file_name(key: str) -> str:
    """The name of a curve's file, without its ending."""
    return quote(key, safe=" @()+-")


def key_of(name: str) -> str:
    """The key of a metric: its name where a curve may have it, else one made of it; "" for an empty name.

    Programs cannot report what the platform measures: "system/cpu" of a program becomes "_system/cpu".
    """
    text = name.strip()
    if text.startswith(SYSTEM):
        text = f"_{text}"
    if not text or is_name(text):
        return text
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_MARK_LENGTH]
    short = _UNUSABLE.sub("_", text)
    short = (f"_{short}" if short[0] in ". -" else short)[: MAX_LENGTH - _MARK_LENGTH - 1]
    while len(file_name(short)) > MAX_FILE_BYTES - _MARK_LENGTH - 1:
        short = short[:-1]
    return f"{short}@{mark}"
