"""Names and paths of files as people and scripts write them, and back to what the disk has.

A name on the disk is any bytes. Those that are no UTF-8, control characters, signs that turn the direction of text and
spaces at its ends stand as `\\xNN`, a backslash as two. So every file can be seen, and none passes for another.
"""

from __future__ import annotations

import re
import unicodedata

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from aiplatform.lib.trees import Parts

MAX_BYTES = 255  # bytes of a name
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(\\))")
_TURNING = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_UNSEEN = {"Cc", "Cs", "Cn", "Zl", "Zp"}


def shown(name: bytes) -> str:
    """One name as it is shown and sent."""
    text = name.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable() and "\\" not in text and text.strip() == text:  # nearly all of them
        return text
    before, after = len(text) - len(text.lstrip()), len(text.rstrip())
    return "".join(_sign(char) if before <= at < after else _escaped(char) for at, char in enumerate(text))


def shown_path(parts: Parts) -> str:
    """A path as it is shown and sent."""
    return "/".join(shown(part) for part in parts)


def parse(path: str) -> Parts:
    """The steps of a path that was shown or typed; slashes at its ends and "." mean nothing.

    Raises:
        Invalid: "..", a NUL, or half of a surrogate pair.
    """
    try:
        steps = [_bytes_of(step) for step in path.split("/")]
    except UnicodeEncodeError:
        raise Invalid(_("Invalid path."), field="path") from None
    parts = tuple(step for step in steps if step not in {b"", b"."})
    if any(step == b".." or b"/" in step or b"\0" in step for step in parts):
        raise Invalid(_("The path leaves the permitted folder."), field="path")
    return parts


def check_new(name: bytes, *, field: str = "name") -> bytes:
    """Refuse a name that the platform gives no file, though a job may.

    Raises:
        Invalid: empty, too long, or with what cannot be seen.
    """
    text = name.decode("utf-8", "surrogateescape")
    if not text.strip() or name in {b".", b".."} or "/" in text:
        raise Invalid(_("Enter a name without a slash."), field=field)
    if len(name) > MAX_BYTES:
        raise Invalid(_("A name can have at most %(most)s bytes.") % {"most": MAX_BYTES}, field=field)
    if any(_sign(char) not in {char, "\\\\"} for char in text):
        message = _("A name must not contain control characters or characters that change the text direction.")
        raise Invalid(message, field=field)
    return name


def for_archive(parts: Parts) -> str:
    """A path as a name in a zip, which no program that unpacks it takes for another place."""
    text = b"/".join(parts).decode("utf-8", "replace")
    return "".join("_" if char == "\\" or _sign(char) != char else char for char in text)


def _bytes_of(step: str) -> bytes:
    result, start = b"", 0
    for match in _ESCAPED.finditer(step):
        result += step[start : match.start()].encode() + (bytes.fromhex(match[1]) if match[1] else b"\\")
        start = match.end()
    return result + step[start:].encode()


def _sign(char: str) -> str:
    if char == "\\":
        return "\\\\"
    if char in _TURNING or unicodedata.category(char) in _UNSEEN:
        return _escaped(char)
    return char


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
