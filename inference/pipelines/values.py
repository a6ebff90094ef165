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
DEEPEST = 30  # lists and objects inside one another
MOST_VALUES = 20_000  # in one tree
MOST_TEXT = 1 << 20  # characters of all texts of one tree, after inserting
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
    found, read = Refusals(), list[str]()
    for text in _texts(tree):
        with found:
            read += _read(text)
    found.end()
    return read


def substitute(tree: Any, values: Mapping[str, Any], *, item: Any = None, has_item: bool = False) -> Any:
    """Return the tree with every reference replaced; the given one stays as it is.

    Args:
        values: parameters of the run by name.
        item: the item that the step runs for.
        has_item: whether there is one; an item may be None.

    Raises:
        Invalid: one for each reference that means nothing; the tree is or becomes too deep or too large.
    """
    found = Refusals()
    known: dict[str, Any] = {}
    for name in dict.fromkeys(references(tree)):
        with found:
            known[name] = _meant(name, values, item, has_item)
    found.end()
    left = [MOST_TEXT]
    made = _rebuilt(tree, lambda text: _inserted(text, known, left))
    check(made)
    return made


def scope(given: Mapping[str, Any], step: str) -> dict[str, Any]:
    """The parameters that a step sees: those of the pipeline that it stands in, whose names begin as its own does."""
    prefix = step.rpartition("/")[0]
    names = {name: name.rpartition("/") for name in given}
    return {own: given[name] for name, (where, _slash, own) in names.items() if where == prefix}


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
    """Every text of a tree in order, names of parameters apart."""
    todo, seen, characters = [(tree, 0)], 0, 0
    while todo:
        value, depth = todo.pop()
        seen += 1
        if depth > DEEPEST:
            raise Invalid(_("Parameters have at most %(most)s lists inside one another.") % {"most": DEEPEST})
        if seen > MOST_VALUES:
            raise Invalid(_("Parameters of a step have at most %(most)s values.") % {"most": MOST_VALUES})
        if isinstance(value, str):
            characters += len(value)
            if characters > MOST_TEXT:
                raise Invalid(_("Parameters of a step have at most %(most)s characters.") % {"most": MOST_TEXT})
            yield value
        elif isinstance(value, Mapping):
            todo += [(one, depth + 1) for one in reversed(list(value.values()))]
        elif isinstance(value, Sequence):
            todo += [(one, depth + 1) for one in reversed(value)]


def _read(text: str) -> list[str]:
    found, read = Refusals(), []
    for count, match in enumerate(_REFERENCE.finditer(text)):
        if count > MAX_REFUSALS and found:
            break
        name = match["name"]
        if match.group() == "$${":
            continue
        with found:
            if name is None:
                said = _(
                    "“%(text)s” opens a reference that does not end. Close it with }, or write $${ for the characters."
                )
                raise Invalid(said % {"text": text[match.start() : match.start() + 40]})
            if not _NAME.fullmatch(name) and not _PATH.fullmatch(name):
                said = _(
                    "“${%(name)s}” is no reference: write ${name}, ${item} or ${item.key}, and $${ for the characters."
                )
                raise Invalid(said % {"name": name[:80]})
            read.append(name)
    found.end()
    return read


def _meant(name: str, values: Mapping[str, Any], item: Any, has_item: bool) -> Any:
    if not _PATH.fullmatch(name):
        if name not in values:
            said = _("There is no parameter %(name)s. Known: %(known)s.")
            known = ", ".join(sorted(values)[:20]) or _("none")
            raise Invalid(said % {"name": name, "known": known})
        return values[name]
    if not has_item:
        raise Invalid(_("${%(name)s} has a meaning only in a step that runs for each item of a list.") % {"name": name})
    for key in name.split(".")[1:]:
        if isinstance(item, Mapping) and key in item:
            item = item[key]
        elif isinstance(item, list) and key.isascii() and key.isdigit() and int(key) < len(item):
            item = item[int(key)]
        else:
            known = ", ".join(sorted(map(str, item))[:20]) if isinstance(item, Mapping) else ""
            said = _("The item has no “%(key)s” for ${%(name)s}. It has: %(known)s.")
            raise Invalid(said % {"key": key, "name": name, "known": known or _("nothing by name")})
    return item


def _inserted(text: str, known: Mapping[str, Any], left: list[int]) -> Any:
    whole = _REFERENCE.fullmatch(text)
    if whole and whole["name"] is not None:
        return known[whole["name"]]

    def one(match: re.Match[str]) -> str:
        words = "${" if match.group() == "$${" else as_text(known[match["name"]])
        left[0] -= len(words)
        if left[0] < 0:
            raise Invalid(_("Parameters of a step have at most %(most)s characters.") % {"most": MOST_TEXT})
        return words

    return _REFERENCE.sub(one, text)


def _rebuilt(tree: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(tree, str):
        return change(tree)
    if isinstance(tree, Mapping):
        return {name: _rebuilt(value, change) for name, value in tree.items()}
    if isinstance(tree, Sequence):
        return [_rebuilt(value, change) for value in tree]
    return tree
