"""Parse typed values from text. Needs no Django: forms and the command line parse alike."""

from __future__ import annotations


def typed(raw: str) -> bool | int | float | str:
    """Parse `true`, `3` and `0.1` to their types, all else to text; quotation marks keep a number a text."""
    if len(raw) >= 2 and raw[0] == raw[-1] and raw[0] in "\"'":
        return raw[1:-1]
    if raw.lower() in ("true", "false"):
        return raw.lower() == "true"
    for parse in (int, float):
        try:
            return parse(raw)
        except ValueError:
            continue
    return raw
