"""A pipeline as YAML, there and back without loss, and into a text that people have written in.

The first document is the specification, each step a paragraph, a step after those that it needs; where steps stand is
the second document, which may be missing. Texts can be merged: whoever changes a step on the canvas rewrites the lines
that say so, and every other line, comments and order with it, stays as somebody wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from inference.pipelines.diffing import ordered, renames
from inference.pipelines.text_reading import Node, documents
from inference.pipelines.text_writing import key_text, pair

PARTS = ("kind", "with", "from", "when", "after", "each", "retries", "rule", "tolerate", "note")
TOP = ("format", "parameters", "steps")
_BREAKS = "\r\x85\u2028\u2029"  # line ends for readers of YAML only


@dataclass(frozen=True, slots=True)
class Read:
    """What a text says. `layout` is None where it says nothing of it; neither has been checked."""

    spec: dict[str, Any]
    layout: dict[str, Any] | None = None


def from_yaml(text: str) -> Read:
    """Read a text; `graph.parse` then judges what it says.

    Raises:
        Invalid: it cannot be read; `field` is "text".
    """
    return _read(documents(text))


def to_yaml(spec: Mapping[str, Any], layout: Mapping[str, Sequence[int]] | None = None) -> str:
    """Write a canonical specification, and the positions of its steps.

    Raises:
        Invalid: it holds what no text can, such as values too deep.
    """
    lines: list[str] = []
    for name in _sorted(spec, TOP):
        value = spec[name]
        if lines:
            lines.append("")
        if name != "steps" or not value or not _has_steps(spec):
            lines += pair(name, value)
            continue
        lines.append("steps:")
        for at, step in enumerate(ordered(value)):
            lines += ([""] if at else []) + pair(step, _step(value[step]), 2)
    return "\n".join([*lines, *_layout(layout)]) + "\n"


def merge_text(text: str, spec: Mapping[str, Any], layout: Mapping[str, Sequence[int]] | None = None) -> str:
    """Return the text changed so that it says what `spec` says; lines of what stays the same stay as they are.

    A text that cannot be read or changed in this way is written again. With `layout` None its own is kept.
    """
    text = text.replace("\r\n", "\n")
    try:
        nodes = documents(text)
        old = _read(nodes)
        if "format" not in old.spec and spec.get("format") == 1:  # what is usual need not be written
            spec = {name: value for name, value in spec.items() if name != "format"}
        wanted = old.layout if layout is None else layout
        if any(char in text for char in _BREAKS) or not nodes[0].block:
            return to_yaml(spec, wanted)
        merged = _Merge(text, old, spec).merge(nodes, wanted)
        now = from_yaml(merged)
    except Invalid:
        return to_yaml(spec, layout)
    if _same(now.spec, spec) and _same(now.layout, wanted):
        return merged
    return to_yaml(spec, wanted)


def _read(nodes: Sequence[Node]) -> Read:
    if not nodes or not isinstance(nodes[0].value, dict):
        raise Invalid(
            _("The text of a pipeline starts with keys, such as steps: followed by the indented steps."), field="text"
        )
    if len(nodes) == 1:
        return Read(nodes[0].value)
    second = nodes[1].value
    if not isinstance(second, dict) or set(second) != {"layout"} or not isinstance(second["layout"], dict):
        raise Invalid(
            _("The second document must contain layout: and below it the position of each step."), field="text"
        )
    return Read(nodes[0].value, second["layout"])


def _sorted(mapping: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    return [name for name in order if name in mapping] + [name for name in mapping if name not in order]


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    return {name: step[name] for name in _sorted(step, PARTS)}


def _layout(layout: Mapping[str, Sequence[int]] | None) -> list[str]:
    if layout is None:
        return []
    return ["---", *pair("layout", {step: list(layout[step]) for step in sorted(layout)})]


def _same(first: Any, second: Any) -> bool:
    """Whether both are the same JSON; 1, 1.0 and true are not."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


class _Merge:
    """One text, and what it shall say."""

    def __init__(self, text: str, old: Read, spec: Mapping[str, Any]) -> None:
        self.lines = text.split("\n")
        self.old, self.spec = old, spec
        self.former = renames(old.spec, spec) if _has_steps(old.spec) and _has_steps(spec) else {}

    def merge(self, nodes: Sequence[Node], layout: Mapping[str, Any] | None) -> str:
        first = nodes[0]
        lines = self.mapping(first, 0, self.spec, ())
        end = nodes[1].document if len(nodes) > 1 else len(self.lines)
        lines += self.lines[first.last + 1 : end]
        if len(nodes) > 1 and _same(layout, self.old.layout):
            lines += self.lines[end:]
        elif layout is not None:
            while lines and not lines[-1].strip():
                lines.pop()
            lines += [*_layout(layout), ""]
        return "\n".join(lines)

    def mapping(self, node: Node, start: int, new: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
        """Return the lines from `start` to the end of a mapping, each key changed where necessary."""
        former = self.former if path == ("steps",) else {}
        now = {old: name for name, old in former.items()}
        entries: dict[str, tuple[list[str], list[str]]] = {}  # lines before a key, and the key's own lines
        for key, (position, child) in node.parts.items():
            name = now.get(key, key)
            lead, line = self.lines[start : position.line], self.lines[position.line]
            start = child.last + 1
            if name not in new:
                continue
            if name != key:
                line = line[: position.column] + key_text(name) + line[position.end :]
            entries[name] = (lead, self.entry(line, child, name, new[name], (*path, name), position.line))
        return self.with_fresh(entries, node.column, new, path)

    def entry(self, line: str, child: Node, name: str, value: Any, path: tuple[str, ...], at: int) -> list[str]:
        """Lines of one key whose first line is `line`."""
        if _same(child.value, value):
            return [line, *self.lines[at + 1 : child.last + 1]]
        if child.block and child.first > at and isinstance(value, Mapping) and value:
            return [line, *self.mapping(child, at + 1, value, path)]
        indent = len(line) - len(line.lstrip(" "))
        made = pair(name, value, indent)
        behind = line[child.end :].strip() if child.first == at and child.end >= 0 and line == self.lines[at] else ""
        if behind.startswith("#") and len(made) == 1:
            made[0] += f"  {behind}"
        return made

    def with_fresh(
        self,
        entries: dict[str, tuple[list[str], list[str]]],
        indent: int,
        new: Mapping[str, Any],
        path: tuple[str, ...],
    ) -> list[str]:
        """Return all lines in order; each new key follows its predecessor in the order of `to_yaml`."""
        steps = path == ("steps",) and _has_steps(self.spec)
        order = ordered(new) if steps else _sorted(new, TOP if not path else PARTS if len(path) == 2 else sorted(new))
        placed, before = list(entries), ""
        for name in order:
            if name not in entries:
                own = pair(name, _step(new[name]) if steps else new[name], indent)
                at = placed.index(before) + 1 if before else 0
                apart = steps or not path
                entries[name] = ([""] if apart and at else [], own)
                if not at and placed:
                    head, lead = _parted(entries[placed[0]][0])
                    entries[name] = (head, own)
                    entries[placed[0]] = (([""] if apart else []) + lead, entries[placed[0]][1])
                placed.insert(at, name)
            before = name
        return [line for name in placed for lines in entries[name] for line in lines]


def _parted(lines: list[str]) -> tuple[list[str], list[str]]:
    """Lines before the first key: those up to the last empty one are about the whole, the rest about the key."""
    end = max((at + 1 for at, line in enumerate(lines) if not line.strip()), default=0)
    return lines[:end], lines[end:]


def _has_steps(spec: Mapping[str, Any]) -> bool:
    steps = spec.get("steps")
    return isinstance(steps, Mapping) and all(isinstance(step, Mapping) for step in steps.values())
