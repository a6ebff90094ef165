"""Requests as text: YAML or JSON that people read and write, with the line of each field."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

import yaml
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

LONGEST = 200_000  # characters
FIELD = "text"


class _Loader(yaml.SafeLoader):
    """Plain values alone: no aliases, which can stand for endless text, no dates, no name twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.MarkedYAMLError(None, None, _("aliases are not read here"), self.peek_event().start_mark)  # type: ignore[no-untyped-call]  # of PyYAML
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _value in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    None, None, _("%(name)s is given twice") % {"name": key.value}, key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


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


def read(text: str) -> dict[str, Any]:
    """The request that a text says.

    Raises:
        Invalid: no YAML, no fields, or values that JSON does not know; the sentence names the line.
    """
    if len(text) > LONGEST:
        raise Invalid(_("A request has at most %(most)s characters.") % {"most": LONGEST}, field=FIELD)
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a loader of plain values
        json.dumps(value, allow_nan=False)
    except yaml.MarkedYAMLError as exc:
        mark, why = exc.problem_mark, exc.problem or exc.context or ""
        raise Invalid(
            _("Line %(line)s cannot be read: %(why)s.") % {"line": mark.line + 1 if mark else 1, "why": why},
            field=FIELD,
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError):
        raise Invalid(_("This is no YAML or JSON of plain values."), field=FIELD) from None
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise Invalid(_("Write one field a line, as in command: python train.py."), field=FIELD)
    return value


def written(request: Mapping[str, Any]) -> str:
    """A request as YAML, its fields in their order."""
    return yaml.dump(dict(request), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100) if request else ""


def lines_of(text: str) -> dict[str, int]:
    """The line on which each field of a readable text begins, from 1."""
    node = yaml.compose(text, Loader=_Loader)
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: key.start_mark.line + 1 for key, _value in node.value}
