"""JSON values as YAML that all readers take for the same: texts in quotes wherever a plain one could mean a number."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from inference.pipelines.text_reading import MAX_DEPTH, plain

_MAX_INLINE_LENGTH = 80  # characters of a list on one line
_MAX_KEY_LENGTH = 500  # characters; readers stop looking for the colon at 1,024
_KEY = re.compile(r"[A-Za-z_][\w./-]*")
_PLAIN = re.compile(r"[\w$/](?:[\w ./$(){}\[\]+*=<>,;|@%^~!?'\"&-]|:(?=\S))*")
_PLAIN_IN_LIST = re.compile(r"[\w$/][\w ./$()+*=<>@%^~-]*")
_resolver = yaml.resolver.Resolver()


def pair(key: str, value: Any, indent: int = 0) -> list[str]:
    """Return the lines of one key and its value.

    Raises:
        Invalid: the value is deeper than texts may be, or no JSON.
    """
    start = " " * indent + key_text(key) + ":"
    if indent > 2 * MAX_DEPTH:
        raise Invalid(_("At most %(most)s nested lists and mappings.") % {"most": MAX_DEPTH}, field="text")
    if isinstance(value, Mapping) and value:
        return [start, *(line for name, item in value.items() for line in pair(str(name), item, indent + 2))]
    if isinstance(value, str) and (block := _block(value, indent + 2)):
        return [f"{start} {block[0]}", *block[1:]]
    if isinstance(value, Sequence) and not isinstance(value, str) and value and not _on_one_line(value):
        return [start, *_items(value, indent + 2)]
    return [f"{start} {scalar(value)}"]


def scalar(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return value if _is_plain(value, _PLAIN) else quoted(value)
    if isinstance(value, float) and math.isfinite(value):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, Mapping) and not value:
        return "{}"
    if isinstance(value, Sequence):
        return _on_one_line(value) or "[]"
    raise Invalid(_("A pipeline cannot contain %(type)s.") % {"type": type(value).__name__}, field="text")


def quoted(text: str) -> str:
    """Return a text in double quotes; invisible characters are written as numbers."""
    written = json.dumps(text, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(char if char.isprintable() else _number(char) for char in written)


def _number(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def key_text(key: str) -> str:
    """Return a key as it is written before its colon."""
    if len(key) > _MAX_KEY_LENGTH:
        raise Invalid(_("The name can have at most %(most)s characters.") % {"most": _MAX_KEY_LENGTH}, field="text")
    return key if _is_plain(key, _KEY) else quoted(key)


def _is_plain(text: str, allowed: re.Pattern[str]) -> bool:
    """Whether readers of YAML 1.1 and of 1.2 take it for this text without quotes."""
    if not allowed.fullmatch(text) or text.endswith(" ") or not text.isprintable():
        return False
    try:
        same = plain(text) == text
    except ValueError:
        return False
    tag = _resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # as in the library
    return bool(same and tag == "tag:yaml.org,2002:str")


def _block(text: str, indent: int) -> list[str]:
    """A text of several lines as they are; nothing where quotes are needed to keep it."""
    end = "" if text.endswith("\n") else "-"
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 2 or not lines[0] or not lines[-1] or text[0] == " ":
        return []
    if any(not line.isprintable() or (line and not line.strip()) for line in lines):
        return []
    return [f"|{end}", *(" " * indent + line if line else "" for line in lines)]


def _on_one_line(values: Sequence[Any]) -> str:
    """Return a short list of plain values; empty where it is long or contains other values."""
    items, length = [], 0
    for value in values:
        if isinstance(value, Mapping | list | tuple):
            return ""
        if isinstance(value, str) and not _is_plain(value, _PLAIN_IN_LIST):
            items.append(quoted(value))
        else:
            items.append(scalar(value))
        length += len(items[-1]) + 2
        if length > _MAX_INLINE_LENGTH:
            return ""
    return f"[{', '.join(items)}]"


def _items(values: Sequence[Any], indent: int) -> list[str]:
    lines: list[str] = []
    for value in values:
        own = pair("x", value, indent)  # as the value of a key of one character, whose text is cut off again
        first = own[0][indent + 2 :].strip()
        if first:
            lines += [" " * indent + f"- {first}", *own[1:]]
        else:
            lines += [" " * indent + "- " + own[1].lstrip(" "), *own[2:]]
    return lines
