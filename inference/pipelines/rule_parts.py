"""The words of a rule: what `expressions` reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

FUNCTIONS = frozenset({"abs", "min", "max"})
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
#: How tightly each operator binds; `not` is between `and` and the comparisons, a sign is above all.
PRECEDENCE = {"or": 1, "and": 2, **dict.fromkeys(COMPARISONS, 4), "+": 5, "-": 5, "*": 6, "/": 6}
NOT, SIGN = 3, 7
_SHOWN = 20  # characters of the rule that a refusal repeats


class Sort(StrEnum):
    """The kind of a part of a rule, as far as its text determines it."""

    NUMBER = "number"
    TEXT = "text"
    YESNO = "yesno"
    NAME = "name"  # regardless of the value of the name
    SIGN = "sign"  # operators, parentheses, commas
    END = "end"


@dataclass(frozen=True, slots=True)
class Part:
    """One word of a rule. `at` counts characters from 0."""

    sort: Sort
    text: str
    at: int
    value: float | str | bool = ""


_WORD = r"(?:[^\W\d]\w*|`[^`\n]{1,200}`)"
_PARTS = re.compile(
    rf"""(?P<space>\s+)
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>{_WORD}(?:\.(?:\w+|`[^`\n]{{1,200}}`))*)
    |(?P<text>"[^"\n]*"|'[^'\n]*')
    |(?P<sign><=|>=|==|!=|[-+*/<>(),])""",
    re.VERBOSE,
)
_WORDS = re.compile(r"`([^`]*)`|([^`.]+)")


def split(rule: str) -> list[Part]:
    """Return the words of a rule, an END behind them.

    Raises:
        Invalid: a character that no rule has; the sentence says where and, where it can, what to write instead.
    """
    parts, at = [], 0
    while at < len(rule):
        match = _PARTS.match(rule, at)
        if match is None:
            raise Invalid(_unreadable(rule, at))
        if match.lastgroup != "space":
            parts.append(_part(str(match.lastgroup), match.group(), at))
        at = match.end()
    return [*parts, Part(Sort.END, "", len(rule))]


def place(rule: str, at: int) -> str:
    """Where something is wrong, in words."""
    rest = rule[at : at + _SHOWN]
    if not rest:
        return _("At the end of the rule")
    return _("At character %(at)s of the rule, “%(rest)s”") % {"at": at + 1, "rest": rest}


def _part(group: str, text: str, at: int) -> Part:
    if group == "number":
        return Part(Sort.NUMBER, text, at, float(text))
    if group == "text":
        return Part(Sort.TEXT, text, at, text[1:-1])
    if group == "sign" or text in ("and", "or", "not"):
        return Part(Sort.SIGN, text, at)
    if text in ("true", "false"):
        return Part(Sort.YESNO, text, at, text == "true")
    name = ".".join(quoted or plain for quoted, plain in _WORDS.findall(text))
    return Part(Sort.NAME, text, at, name)


def _unreadable(rule: str, at: int) -> str:
    here, sign = place(rule, at), rule[at]
    if sign == "=":
        return _("%(here)s: write == to compare.") % {"here": here}
    if sign in "&|!":
        return _("%(here)s: write and, or and not as words.") % {"here": here}
    if sign in "`\"'":
        return _("%(here)s: the closing quote is missing.") % {"here": here}
    message = _(
        "%(here)s: not part of the rule syntax. Put a name with special characters in backticks, such as `AP50@small`."
    )
    return message % {"here": here}
