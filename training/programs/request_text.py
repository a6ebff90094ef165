"""Requests as text: YAML or JSON that people read and write, with the line of each field.

`{{ name }}`, a parameter of a template, is a word of the text wherever it stands, quoted or not.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Hashable, Mapping
from typing import Any

import yaml
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

MAX_LENGTH = 200_000  # characters
MAX_NODES = 12_000  # values, names, and beginnings and ends of lists and mappings
MAX_DEPTH = 40  # lists and mappings inside one another
MAX_NUMBER_LENGTH = 300  # characters: numbers of base 60 take quadratic time
FIELD = "text"
PARAMETER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,39})\s*\}\}")


_CLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_CLoader):  # type: ignore[misc, valid-type]  # of libyaml where it is installed
    """Plain values alone: no dates, no name twice, no numbers that are long to read."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        names: set[str] = set()
        for key, _value in node.value:
            if isinstance(key.value, str) and key.value in names:
                raise yaml.MarkedYAMLError(
                    None, None, _("duplicate field %(name)s") % {"name": key.value}, key.start_mark
                )
            names.add(str(key.value))
        return super().construct_mapping(node, deep=deep)

    def construct_number(self, node: yaml.ScalarNode) -> float:
        if len(node.value) > MAX_NUMBER_LENGTH:
            raise yaml.MarkedYAMLError(None, None, _("this number is too long"), node.start_mark)
        is_whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as a block, as people write them."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


class _Words:
    """Parameters of a text as words without a meaning in YAML, which reads `{{` as the start of a mapping."""

    def __init__(self, text: str) -> None:
        self._stem = f"z{secrets.token_hex(8)}p"  # stands in no text; after a backslash `z` is refused as `{` is
        self._words: dict[str, str] = {}  # by how the parameter is written
        self.text = PARAMETER.sub(self._word, text)
        self._known = {word: written for written, word in self._words.items()}

    def _word(self, match: re.Match[str]) -> str:
        written = match[0]
        if len(written.splitlines()) > 1:  # the lines of the text are counted
            return written
        return self._words.setdefault(written, f"{self._stem}{len(self._words)}z")

    def back(self, value: Any) -> Any:
        """Return the value with its parameters as they were written."""
        if isinstance(value, str):
            return re.sub(rf"{self._stem}\d+z", lambda match: self._known[match[0]], value)
        if isinstance(value, dict):
            return {self.back(name): self.back(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.back(inner) for inner in value]
        return value


def read(text: str) -> dict[str, Any]:
    """Parse the request in a text.

    Raises:
        Invalid: no YAML, no fields, or values that JSON does not know; the sentence names the line.
    """
    if len(text) > MAX_LENGTH:
        raise Invalid(_("A request can have at most %(most)s characters.") % {"most": MAX_LENGTH}, field=FIELD)
    placeholders = _Words(text)
    try:
        _check(placeholders.text)
        value = yaml.load(placeholders.text, Loader=_Loader)  # noqa: S506 - a loader of plain values
        json.dumps(value, allow_nan=False)
        value = placeholders.back(value)
    except yaml.MarkedYAMLError as exc:
        mark, why = exc.problem_mark, exc.problem or exc.context or ""
        line = min(mark.line, text.count("\n")) + 1 if mark else 1  # libyaml counts one more at the end
        raise Invalid(
            _("Line %(line)s is invalid: %(why)s.") % {"line": line, "why": placeholders.back(why)},
            field=FIELD,
            line=line,
            why=placeholders.back(why),
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError):
        raise Invalid(_("Expected YAML or JSON with plain values."), field=FIELD) from None
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise Invalid(_("Write one field per line, such as command: python train.py."), field=FIELD)
    return value


def _check(text: str) -> None:
    """Refuse what takes long to read, before anything is built of it.

    Raises:
        MarkedYAMLError: too many values, nested too deep, an alias, which can stand for endless text, or no YAML.
    """
    depth = 0
    event: Any
    for count, event in enumerate(yaml.parse(text, Loader=_CLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        problem = ""
        if isinstance(event, yaml.AliasEvent):
            problem = _("aliases are not supported")
        elif count > MAX_NODES:
            problem = _("a request can have at most %(most)s values") % {"most": MAX_NODES}
        elif depth > MAX_DEPTH:
            problem = _("lists and mappings are nested deeper than %(most)s levels") % {"most": MAX_DEPTH}
        if problem:
            raise yaml.MarkedYAMLError(None, None, problem, event.start_mark)


def written(request: Mapping[str, Any]) -> str:
    """A request as YAML, its fields in their order."""
    return yaml.dump(dict(request), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100) if request else ""


def lines_of(text: str) -> dict[str, int]:
    """Return the line on which each field of a readable text begins, from 1."""
    placeholders = _Words(text)
    _check(placeholders.text)
    node = yaml.compose(placeholders.text, Loader=_Loader)
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {placeholders.back(key.value): key.start_mark.line + 1 for key, _value in node.value}
