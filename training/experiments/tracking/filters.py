"""MLflow's language for searches: comparisons of metrics, params, tags and attributes joined by `and`, and orders."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

LONGEST, MAX_COMPARISONS = 4000, 40
ATTRIBUTE, METRIC, PARAM, TAG = "attribute", "metric", "param", "tag"
_KINDS = {
    "attribute": ATTRIBUTE, "attributes": ATTRIBUTE, "attr": ATTRIBUTE, "run": ATTRIBUTE,
    "metric": METRIC, "metrics": METRIC,
    "param": PARAM, "params": PARAM, "parameter": PARAM, "parameters": PARAM,
    "tag": TAG, "tags": TAG,
}  # fmt: skip
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<name>[A-Za-z_]\w*(?:\.(?:`[^`]*`|"[^"]*"|[\w./-]+))?)
    |(?P<text>'[^']*'|"[^"]*")
    |(?P<number>[+-]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d+)?)
    |(?P<sign><=|>=|!=|=|<|>)
    |(?P<mark>[(),])
    )""",
    re.VERBOSE,
)
_WORDS = ("LIKE", "ILIKE", "IN", "NOT", "IS")
Token = tuple[str, str]  # kind, text
ValueOf = Callable[[str, str], Any]  # of a kind and a key; None where there is none


@dataclass(frozen=True)
class Comparison:
    """`kind`.`key` `sign` `value`. Signs: = != < <= > >= LIKE ILIKE IN NOT IN IS NULL, IS NOT NULL."""

    kind: str
    key: str
    sign: str
    value: Any = None


@dataclass(frozen=True)
class Order:
    kind: str
    key: str
    descending: bool


def parse(text: str) -> list[Comparison]:
    """Return the comparisons of a filter, all of which must hold.

    Raises:
        Invalid: it says something else, or too much.
    """
    if len(text) > LONGEST:
        raise Invalid(_("A filter can have at most %(most)s characters.") % {"most": LONGEST}, field="filter")
    reader = _Reader(_tokens(text), text)
    comparisons: list[Comparison] = []
    while not reader.ended:
        if comparisons:
            reader.word("AND")
        comparisons.append(reader.comparison())
        if len(comparisons) > MAX_COMPARISONS:
            message = _("A filter can have at most %(most)s comparisons.") % {"most": MAX_COMPARISONS}
            raise Invalid(message, field="filter")
    return comparisons


def parse_orders(texts: Sequence[str]) -> list[Order]:
    """Return orders as in "metrics.loss DESC".

    Raises:
        Invalid: one says something else.
    """
    orders = []
    for text in texts[:MAX_COMPARISONS]:
        reader = _Reader(_tokens(text[:LONGEST]), text)
        kind, key = reader.name()
        direction = "ASC" if reader.ended else reader.word("ASC", "DESC")
        if not reader.ended:
            raise reader.refusal()
        orders.append(Order(kind, key, direction == "DESC"))
    return orders


def matches(comparisons: Sequence[Comparison], value_of: ValueOf) -> bool:
    """Return whether all comparisons hold for an object that is not filtered in the database.

    Args:
        value_of: the value of a kind and a key, None where there is none.
    """
    return all(_holds(comparison, value_of(comparison.kind, comparison.key)) for comparison in comparisons)


def _holds(comparison: Comparison, value: Any) -> bool:
    if comparison.sign in {"IS NULL", "IS NOT NULL"}:
        return (value is None) == (comparison.sign == "IS NULL")
    if value is None:
        return False
    if comparison.sign in {"IN", "NOT IN"}:
        return (str(value) in comparison.value) == (comparison.sign == "IN")
    if comparison.sign in {"LIKE", "ILIKE"}:
        text, pattern = (
            (str(value), comparison.value)
            if comparison.sign == "LIKE"
            else (str(value).lower(), comparison.value.lower())
        )
        return _is_like(text, pattern)
    wanted = (
        comparison.value
        if isinstance(comparison.value, float) == isinstance(value, int | float)
        else str(comparison.value)
    )
    left = value if type(wanted) is not str else str(value)
    return bool(
        {"=": left == wanted, "!=": left != wanted}.get(comparison.sign)
        if comparison.sign in {"=", "!="}
        else {"<": left < wanted, "<=": left <= wanted, ">": left > wanted, ">=": left >= wanted}[comparison.sign]
    )


def _is_like(text: str, pattern: str) -> bool:
    """SQL's LIKE in time that grows with text and pattern alone."""
    at, next_at, star, mark = 0, 0, -1, 0
    while at < len(text):
        if next_at < len(pattern) and pattern[next_at] == "%":
            star, mark, next_at = next_at, at, next_at + 1
        elif next_at < len(pattern) and pattern[next_at] in {text[at], "_"}:
            at, next_at = at + 1, next_at + 1
        elif star >= 0:
            mark += 1
            at, next_at = mark, star + 1
        else:
            return False
    return all(sign == "%" for sign in pattern[next_at:])


def _tokens(text: str) -> list[Token]:
    tokens, at, end = [], 0, len(text.rstrip().rstrip(";"))
    while at < end:
        match = _TOKEN.match(text, at, end)
        if match is None or match.lastgroup is None:
            raise _refusal(text)
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


def _refusal(text: str) -> Invalid:
    message = _("This filter or order is invalid: %(text)s. Example: %(example)s")
    example = "metrics.acc > 0.9 and params.lr = '0.1' and tags.kind = 'a' and attributes.status = 'FINISHED'"
    return Invalid(message % {"text": text[:200], "example": example}, field="filter")


class _Reader:
    def __init__(self, tokens: list[Token], text: str) -> None:
        self._tokens, self._text, self._at = tokens, text, 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    def refusal(self) -> Invalid:
        return _refusal(self._text)

    def _expect(self, *kinds: str) -> Token:
        if self.ended or self._tokens[self._at][0] not in kinds:
            raise self.refusal()
        self._at += 1
        return self._tokens[self._at - 1]

    def word(self, *expected: str) -> str:
        _kind, text = self._expect("name")
        if text.upper() not in expected:
            raise self.refusal()
        return text.upper()

    def name(self) -> tuple[str, str]:
        """Kind and key: `metrics.a`, "metrics.`a b`", or the bare name of an attribute."""
        _kind, text = self._expect("name")
        kind, dot, key = text.partition(".")
        if not dot:
            return ATTRIBUTE, text
        if kind.lower() not in _KINDS:
            raise self.refusal()
        return _KINDS[kind.lower()], key[1:-1] if key[:1] in {"`", '"'} else key

    def comparison(self) -> Comparison:
        kind, key = self.name()
        sign = self._sign()
        if sign in {"IS NULL", "IS NOT NULL"}:
            return Comparison(kind, key, sign)
        if sign in {"IN", "NOT IN"}:
            return Comparison(kind, key, sign, self._list())
        form, text = self._expect("text", "number")
        if form == "number":
            return Comparison(kind, key, sign, float(text))
        return Comparison(kind, key, sign, text[1:-1])

    def _sign(self) -> str:
        form, text = self._expect("sign", "name")
        if form == "sign":
            return text
        word = text.upper()
        if word == "IS":
            return "IS NULL" if self.word("NOT", "NULL") == "NULL" else f"IS NOT {self.word('NULL')}"
        if word == "NOT":
            return f"NOT {self.word('IN')}"
        if word not in _WORDS:
            raise self.refusal()
        return word

    def _list(self) -> list[str]:
        values = []
        if self._expect("mark")[1] != "(":
            raise self.refusal()
        while True:
            values.append(self._expect("text")[1][1:-1])
            if self._expect("mark")[1] == ")":
                return values
