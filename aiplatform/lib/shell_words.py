"""Split command lines into words as a POSIX shell does, in linear time.

`shlex.split` appends to a word character by character, which takes quadratic time for long words.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""(?P<space>[ \t\r\n]++)
    |(?P<plain>[^ \t\r\n'"\\]++)
    |'(?P<single>[^']*+)'
    |"(?P<double>(?:[^"\\]++|\\.)*+)"
    |\\(?P<one>.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = re.compile(r'\\(["\\])')


def split(text: str) -> list[str]:
    """Return the words without their quotes, as `shlex.split` does.

    Raises:
        ValueError: a quotation mark is open, or the text ends with a backslash.
    """
    args: list[str] = []
    pieces: list[str] | None = None
    at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            raise ValueError("No escaped character" if text[at] == "\\" else "No closing quotation")
        at = match.end()
        kind = match.lastgroup
        if kind == "space":
            if pieces is not None:
                args.append("".join(pieces))
                pieces = None
            continue
        piece = match[kind or ""]
        pieces = [] if pieces is None else pieces
        pieces.append(_ESCAPED.sub(r"\1", piece) if kind == "double" else piece)
    if pieces is not None:
        args.append("".join(pieces))
    return args
