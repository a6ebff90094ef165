"""Regular expressions of the product: where each is written, how it is applied, and inputs that make one slow.

A backtracking engine takes quadratic time where a repetition may begin at many places of a text, or where two
repetitions next to each other accept the same characters. `attacks` derives such inputs from the parsed pattern.
"""

from __future__ import annotations

import ast
import importlib
import re
import re._constants as op
import re._parser as parser
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

from tests.architecture.code import APPS, ROOT, modules_with, tree

FOLDERS = ("aiplatform", *APPS)
METHODS = ("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer")
SEARCHING = {"search", "sub", "subn", "split", "findall", "finditer"}
LONG_REPEAT = 20  # repetitions with a smaller maximum cannot add up
MAX_PUMPS, MAX_BEGINNINGS = 24, 4
ENDS = ("", "\x00", "!x")
ALPHABET = "aA0_ .,:;/\\-+=%@#~\n\t\"'`$&?!<>()[]{}|*éZzx1\x00"


@dataclass(frozen=True)
class Use:
    """One regular expression of a module.

    Attributes:
        name: `module:line`, or `module:NAME` of one that has a name.
        pattern: None where only the running code knows it.
        is_searched: whether it is looked for anywhere in a text, as against from its beginning alone.
    """

    name: str
    pattern: re.Pattern[Any] | None
    is_searched: bool

    def cpu_s(self, attack: tuple[str, str, str], size: int) -> float:
        """Return the CPU time that an attack of some characters takes."""
        assert self.pattern is not None
        beginning, pump, end = attack
        text: Any = beginning + pump * (size // len(pump)) + end
        empty: Any = ""
        if isinstance(self.pattern.pattern, bytes):
            text, empty = text.encode("latin-1", "replace"), b""
        began = time.process_time()
        if self.is_searched:
            self.pattern.sub(empty, text)
        else:
            self.pattern.match(text)
            self.pattern.fullmatch(text)
        return time.process_time() - began


@cache
def uses() -> tuple[Use, ...]:
    """Return every regular expression that the product writes."""
    methods = _methods_by_name()
    found = [use for path in modules_with(r"\bre\.", *FOLDERS) for use in _in_module(path, methods)]
    return tuple(sorted(found, key=lambda use: use.name))


def module_name(path: Path) -> str:
    dotted = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    return dotted.removesuffix(".__init__")


def _methods_by_name() -> dict[str, set[str]]:
    """Return what is called on each name: NAME.search(…), module.NAME.search(…), map(NAME.search, …).

    A name with an underscore belongs to its own module: "module:_NAME".
    """
    methods: dict[str, set[str]] = {}
    for path in modules_with("|".join(METHODS), *FOLDERS):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                methods.setdefault(_key(module_name(path), name), set()).add(node.attr)
    return methods


def _key(module: str, name: str) -> str:
    return f"{module}:{name}" if name.startswith("_") else name


def _in_module(path: Path, methods: Mapping[str, set[str]]) -> Iterator[Use]:
    module = module_name(path)
    for node, owner in _calls(tree(path)):
        assert isinstance(node.func, ast.Attribute)
        method = node.func.attr
        called = methods.get(_key(module, owner), set(METHODS)) if method == "compile" else {method}
        pattern = _evaluated(module, node)
        label = owner or str(node.lineno)
        yield Use(f"{module}:{label}", pattern, bool(called & SEARCHING))


def _calls(module: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of `re` with the name they are assigned to, "" where there is none."""
    names: dict[int, str] = {}
    for node in ast.walk(module):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        if targets and isinstance(value, ast.Call) and isinstance(targets[0], ast.Name):
            names[id(value)] = targets[0].id
    for node in ast.walk(module):
        function = getattr(node, "func", None)
        if isinstance(node, ast.Call) and isinstance(function, ast.Attribute):
            of_re = isinstance(function.value, ast.Name) and function.value.id == "re"
            if of_re and function.attr in ("compile", *METHODS):
                yield node, names.get(id(node), "")


def _evaluated(module: str, call: ast.Call) -> re.Pattern[Any] | None:
    """Return the compiled pattern of a call whose first argument the module's own names determine."""
    namespace = vars(importlib.import_module(module))
    try:
        given = eval(compile(ast.Expression(call.args[0]), module, "eval"), dict(namespace))
        flags = [word.value for word in call.keywords if word.arg == "flags"]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
            flags += call.args[1:2]
        value = eval(compile(ast.Expression(flags[0]), module, "eval"), dict(namespace)) if flags else 0
        return re.compile(given, value)
    except NameError:
        return None


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (beginning, repeated part, end) of texts that may take long."""
    raw = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = parser.parse(raw, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    places = list(_repeats(list(parsed), ""))
    if not places:
        return
    pumps: dict[str, None] = {}
    for before, bodies in places:
        for body in bodies:
            pumps[body] = None
            if before:
                pumps[before] = None
                pumps[before + body] = None
    pumps |= dict.fromkeys(letter for letter in ALPHABET if letter in raw)
    beginnings = dict.fromkeys(chain([""], (before for before, _bodies in places)))
    yield from product(islice(beginnings, MAX_BEGINNINGS), islice(filter(None, pumps), MAX_PUMPS), ENDS)


def _repeats(nodes: list[Any], before: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (a text that leads there, texts of its body) of every long repetition."""
    for kind, value in nodes:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _low, high, body = value
            if high >= LONG_REPEAT:
                yield before, _samples(list(body))
            yield from _repeats(list(body), before)
        elif kind is op.SUBPATTERN:
            yield from _repeats(list(value[3]), before)
        elif kind is op.BRANCH:
            for branch in value[1]:
                yield from _repeats(list(branch), before)
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            yield from _repeats(list(value[1]), before)
        elif kind is op.ATOMIC_GROUP:
            yield from _repeats(list(value), before)
        before += _sample([(kind, value)])


def _samples(nodes: list[Any]) -> list[str]:
    """Return several texts that a sequence accepts: of a class each representative, of alternatives each."""
    if len(nodes) == 1:
        kind, value = nodes[0]
        if kind is op.IN:
            return [c for c in ALPHABET if _accepts(value, c)][:12] or [_of_class(value)]
        if kind is op.BRANCH:
            return [sample for branch in value[1] for sample in _samples(list(branch))][:12]
        if kind is op.SUBPATTERN:
            return _samples(list(value[3]))
        if kind in (op.ANY, op.NOT_LITERAL):
            return [c for c in 'a 0_."/' if kind is op.ANY or ord(c) != value]
    long = "".join(_sample([node], repeats=2) for node in nodes)
    return list(dict.fromkeys([_sample(nodes), long]))


def _sample(nodes: list[Any], repeats: int = 1) -> str:
    """Return a short text that a sequence accepts; look-around is not considered."""
    text = ""
    for kind, value in nodes:
        if kind is op.LITERAL:
            text += chr(value)
        elif kind is op.NOT_LITERAL:
            text += next(c for c in ALPHABET if ord(c) != value)
        elif kind is op.ANY:
            text += "a"
        elif kind is op.IN:
            text += _of_class(value)
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            low, high, body = value
            text += _sample(list(body)) * min(max(low, repeats if high > 1 else low), high)
        elif kind is op.SUBPATTERN:
            text += _sample(list(value[3]), repeats)
        elif kind is op.ATOMIC_GROUP:
            text += _sample(list(value), repeats)
        elif kind is op.BRANCH:
            text += _sample(list(value[1][0]), repeats)
    return text


def _of_class(items: list[Any]) -> str:
    return next((c for c in ALPHABET if _accepts(items, c)), None) or next(
        chr(n) for n in range(0x10000) if _accepts(items, chr(n))
    )


def _accepts(items: list[Any], letter: str) -> bool:
    negated = bool(items) and items[0][0] is op.NEGATE
    return any(_has(kind, value, letter) for kind, value in items if kind is not op.NEGATE) != negated


def _has(kind: Any, value: Any, letter: str) -> bool:
    if kind is op.LITERAL:
        return ord(letter) == value
    if kind is op.RANGE:
        return value[0] <= ord(letter) <= value[1]
    digit, space, word = letter.isdecimal(), letter.isspace(), letter.isalnum() or letter == "_"
    return {
        op.CATEGORY_DIGIT: digit, op.CATEGORY_NOT_DIGIT: not digit,
        op.CATEGORY_SPACE: space, op.CATEGORY_NOT_SPACE: not space,
        op.CATEGORY_WORD: word, op.CATEGORY_NOT_WORD: not word,
    }[value]  # fmt: skip
