"""YAML of people and programs, read as JSON: no anchors, no tags, no repeated keys, nothing that readers differ on.

The library only splits the text into events, one after the other; what they mean is decided here, so no text builds
more than it says. Values that YAML 1.1 and 1.2 read differently (`yes`, `010`, `1:30`) are refused, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

MAX_BYTES = 1 << 20
MAX_DEPTH = 40  # mappings and lists inside one another
MAX_DOCUMENTS = 2
MAX_PARTS = 15_000  # keys, values, beginnings and ends; 3 µs each
MAX_NUMBER_LENGTH = 300  # characters
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_UNCLEAR = re.compile(
    r"y|n|yes|no|on|off|[-+]?0[0-9_]+|[-+]?0[xob][0-9a-f_]+|[-+]?[0-9]+_[0-9_.]*|[-+]?[0-9]+(?::[0-5]?[0-9])+"
    r"|[-+]?\.inf|\.nan",
    re.ASCII | re.IGNORECASE,
)
_LABELS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Node:
    """A value and the position of its text. Lines and columns count from 0.

    Attributes:
        first: line on which it begins.
        last: line on which its text ends, comments and empty lines behind it left out.
        end: column behind its last character, or -1 where that is not on one line.
        column: where it begins.
        document: of a whole document: the line of its `---`, or the first one.
        block: a mapping with one key a line, as against {a: 1}.
        parts: of a mapping: position and value of each key.
    """

    value: Any
    first: int
    last: int
    column: int = 0
    end: int = -1
    block: bool = False
    document: int = 0
    parts: dict[str, tuple[Key, Node]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Key:
    """Position of a key of a mapping: line, and the columns of its text."""

    line: int
    column: int
    end: int


def documents(text: str) -> list[Node]:
    """Read one document, or two.

    Raises:
        Invalid: it is too long, no YAML, or has what this module leaves out; the sentence names the line.
    """
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise Invalid(_("The text is larger than %(most)s MiB.") % {"most": MAX_BYTES >> 20}, field="text")
    try:
        return _Reader(text).read()
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        message = _("Line %(line)s is not valid YAML: %(what)s.")
        what = {"line": mark.line + 1 if mark else 1, "what": exc.problem or exc.context or ""}
        raise Invalid(message % what, field="text") from exc
    except (yaml.YAMLError, UnicodeError) as exc:
        raise Invalid(_("The text contains characters that YAML does not permit."), field="text") from exc


def plain(text: str) -> Any:
    """What a plain word means: nothing, true, false, a number, or a text.

    Raises:
        ValueError: readers of YAML differ on it, or no number is that large.
    """
    if text in _LABELS or text.lower() in _LABELS:
        return _LABELS[text.lower()]
    if _UNCLEAR.fullmatch(text):
        raise ValueError(text)
    if _WHOLE.fullmatch(text):
        return int(text) if len(text) <= MAX_NUMBER_LENGTH else _too_large(text)
    if _NUMBER.fullmatch(text):
        number = float(text) if len(text) <= MAX_NUMBER_LENGTH else _too_large(text)
        return number if abs(number) != float("inf") else _too_large(text)
    return text


def _too_large(text: str) -> NoReturn:
    raise ValueError(text)


class _Reader:
    """Builds nodes from events, with a list of what is open instead of calls inside calls."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self.lines = text.split("\n")
        self.open: list[Node] = []
        self.keys: list[tuple[str, Key] | None] = []  # of each that is open: the key whose value comes next
        self.done: list[Node] = []
        self.document = 0  # line where the one that is read begins

    def read(self) -> list[Node]:
        for count, event in enumerate(self.events):
            line = event.start_mark.line
            if count > MAX_PARTS:
                self.refuse(line, _("the text has too many values up to here."))
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                self.refuse(
                    line, _("anchors and aliases (& and *) are not supported: write the values out, or quote the text.")
                )
            if getattr(event, "tag", None) is not None:
                self.refuse(line, _("tags (!) are not supported: remove the tag, or quote the text."))
            if isinstance(event, yaml.ScalarEvent):
                self.scalar(event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self.open_node(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self.finish(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                if len(self.done) == MAX_DOCUMENTS:
                    self.refuse(line, _("at most two documents are supported: the pipeline and its layout."))
                self.document = line
        return self.done

    def refuse(self, line: int, what: str) -> NoReturn:
        raise Invalid(_("Line %(line)s: %(what)s") % {"line": line + 1, "what": what}, field="text")

    def scalar(self, event: Any) -> None:
        start, end = event.start_mark, event.end_mark
        if self.open and isinstance(self.open[-1].value, dict) and self.keys[-1] is None:
            self.keys[-1] = (event.value, Key(start.line, start.column, end.column))
            if event.value in self.open[-1].value:
                self.refuse(start.line, _("Duplicate key “%(key)s”.") % {"key": event.value[:80]})
            return
        value, last = event.value, end.line
        if event.implicit[0] and not event.style:
            try:
                value = plain(event.value)
            except ValueError:
                message = _("quote “%(text)s” if it is a text; otherwise write true, false or a plain number.")
                self.refuse(start.line, message % {"text": event.value[:80]})
        if end.column == 0 and last > start.line:
            last -= 1
        while last > start.line and not "".join(self.lines[last : last + 1]).strip():
            last -= 1
        one_line = end.line == start.line and event.style not in ("|", ">")
        self.add_node(Node(value, start.line, last, start.column, end.column if one_line else -1))

    def open_node(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        start = event.start_mark
        if len(self.open) >= MAX_DEPTH:
            self.refuse(start.line, _("at most %(most)s nested lists and mappings.") % {"most": MAX_DEPTH})
        if self.open and isinstance(self.open[-1].value, dict) and self.keys[-1] is None:
            self.refuse(start.line, _("a key must be a text, not a list or a mapping."))
        block = mapping and not event.flow_style
        self.open.append(Node({} if mapping else [], start.line, start.line, start.column, block=block))
        self.keys.append(None)

    def finish(self, event: Any) -> None:
        node = self.open.pop()
        self.keys.pop()
        if event.end_mark.index > event.start_mark.index:  # } or ]
            node.last = max(node.last, event.end_mark.line)
            node.end = event.end_mark.column if node.last == node.first else -1
        self.add_node(node)

    def add_node(self, node: Node) -> None:
        if not self.open:
            node.document = self.document
            self.done.append(node)
            return
        holder = self.open[-1]
        if isinstance(holder.value, list):
            holder.value.append(node.value)
        else:
            pending = self.keys[-1]
            assert pending is not None
            name, key = pending
            holder.value[name] = node.value
            holder.parts[name] = (key, node)
            self.keys[-1] = None
        holder.last = max(holder.last, node.last)
