"""References in the parameters of steps: `${preset}`, and `${item}`, `${item.key}` in a step that runs for each item.

A text that is nothing but one reference becomes the value with its type; inside longer text the value is inserted as
text. `$${` is a literal `${`. What is inserted is never read again, so values cannot refer to values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import MAX_REFUSALS, Invalid, Refusals

ITEM = "item"
MAX_DEPTH = 30  # lists and objects inside one another
MAX_VALUES = 20_000  # in one tree
MAX_TEXT = 1 << 20  # characters of all texts of one tree, after inserting
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}|\$\{")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_PATH = re.compile(r"item(?:\.[A-Za-z0-9_-]{1,100}){0,10}")


def names(tree: Any) -> set[str]:
    """Return the parameters that a tree of values refers to, without what it takes from its item.

    Raises:
        Invalid: one for each reference that cannot be read; the tree is too deep or too large.
    """
    return {name for name in references(tree) if not _PATH.fullmatch(name)}


def uses_item(tree: Any) -> bool:
    """Whether a tree of values refers to its item. Raises as `names` does."""
    return any(_PATH.fullmatch(name) for name in references(tree))


def references(tree: Any) -> list[str]:
    """Return all references in the order of the tree, such as "preset" and "item.key". Raises as `names` does."""
    refusals, names = Refusals(), list[str]()
    for text in _texts(tree):
        with refusals:
            names += _read(text)
    refusals.end()
    return names


def substitute(tree: Any, values: Mapping[str, Any], *, item: Any = None, has_item: bool = False) -> Any:
    """Return the tree with every reference replaced; the original is not changed.

    Args:
        values: parameters of the run by name.
        item: the item that the step runs for.
        has_item: whether there is one; an item may be None.

    Raises:
        Invalid: one for each reference that means nothing; the tree is or becomes too deep or too large.
    """
    refusals = Refusals()
    replacements: dict[str, Any] = {}
    for name in dict.fromkeys(references(tree)):
        with refusals:
            replacements[name] = _resolve(name, values, item, has_item)
    refusals.end()
    left = [MAX_TEXT]
    result = _rebuilt(tree, lambda text: _inserted(text, replacements, left))
    check(result)
    return result


def scope(params: Mapping[str, Any], step: str) -> dict[str, Any]:
    """Return the parameters that a step sees: those of the pipeline it is part of, which share its path prefix."""
    prefix = step.rpartition("/")[0]
    names = {name: name.rpartition("/") for name in params}
    return {own: params[name] for name, (where, _slash, own) in names.items() if where == prefix}


def check(tree: Any) -> None:
    """Refuse a tree of JSON values that is deeper or larger than a step's parameters may be.

    Raises:
        Invalid: it is.
    """
    for _text in _texts(tree):
        pass


def as_text(value: Any) -> str:
    """A value inside longer text: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _texts(tree: Any) -> Iterator[str]:
    """Yield every text of a tree in order, parameter names excluded."""
    todo, count, characters = [(tree, 0)], 0, 0
    while todo:
        value, depth = todo.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise Invalid(_("Parameters can have at most %(most)s nested lists.") % {"most": MAX_DEPTH})
        if count > MAX_VALUES:
            raise Invalid(_("Parameters of a step can have at most %(most)s values.") % {"most": MAX_VALUES})
        if isinstance(value, str):
            characters += len(value)
            if characters > MAX_TEXT:
                raise Invalid(_("Parameters of a step can have at most %(most)s characters.") % {"most": MAX_TEXT})
            yield value
        elif isinstance(value, Mapping):
            todo += [(item, depth + 1) for item in reversed(list(value.values()))]
        elif isinstance(value, Sequence):
            todo += [(item, depth + 1) for item in reversed(value)]


def _read(text: str) -> list[str]:
    refusals, names = Refusals(), []
    for count, match in enumerate(_REFERENCE.finditer(text)):
        if count > MAX_REFUSALS and refusals:
            break
        name = match["name"]
        if match.group() == "$${":
            continue
        with refusals:
            if name is None:
                message = _(
                    "“%(text)s” opens a reference without end. Close it with }, or write $${ for the characters."
                )
                raise Invalid(message % {"text": text[match.start() : match.start() + 40]})
            if not _NAME.fullmatch(name) and not _PATH.fullmatch(name):
                message = _(
                    "“${%(name)s}” is not a valid reference: write ${name}, ${item} or ${item.key}, and $${ "
                    "for the characters."
                )
                raise Invalid(message % {"name": name[:80]})
            names.append(name)
    refusals.end()
    return names


def _resolve(name: str, values: Mapping[str, Any], item: Any, has_item: bool) -> Any:
    if not _PATH.fullmatch(name):
        if name not in values:
            message = _("Unknown parameter %(name)s. Available parameters: %(known)s.")
            names = ", ".join(sorted(values)[:20]) or _("none")
            raise Invalid(message % {"name": name, "known": names})
        return values[name]
    if not has_item:
        raise Invalid(_("${%(name)s} is available only in a step that runs for each item of a list.") % {"name": name})
    for key in name.split(".")[1:]:
        if isinstance(item, Mapping) and key in item:
            item = item[key]
        elif isinstance(item, list) and key.isascii() and key.isdigit() and int(key) < len(item):
            item = item[int(key)]
        else:
            names = ", ".join(sorted(map(str, item))[:20]) if isinstance(item, Mapping) else ""
            message = _("The item has no “%(key)s” for ${%(name)s}. Available keys: %(known)s.")
            raise Invalid(message % {"key": key, "name": name, "known": names or _("nothing by name")})
    return item


def _inserted(text: str, replacements: Mapping[str, Any], left: list[int]) -> Any:
    single = _REFERENCE.fullmatch(text)
    if single and single["name"] is not None:
        return replacements[single["name"]]

    def replace(match: re.Match[str]) -> str:
        replacement = "${" if match.group() == "$${" else as_text(replacements[match["name"]])
        left[0] -= len(replacement)
        if left[0] < 0:
            raise Invalid(_("Parameters of a step can have at most %(most)s characters.") % {"most": MAX_TEXT})
        return replacement

    return _REFERENCE.sub(replace, text)


def _rebuilt(tree: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(tree, str):
        return change(tree)
    if isinstance(tree, Mapping):
        return {name: _rebuilt(value, change) for name, value in tree.items()}
    if isinstance(tree, Sequence):
        return [_rebuilt(value, change) for value in tree]
    return tree
