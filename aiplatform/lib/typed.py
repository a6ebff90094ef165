"""Words people write, as the values they look like. Needs no Django: forms and the command line read alike."""

from __future__ import annotations


def typed(raw: str) -> bool | int | float | str:
    """`true`, `3` and `0.1` as what they are, all else as text; quotation marks keep a number a text."""
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
