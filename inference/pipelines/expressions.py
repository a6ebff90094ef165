"""Rules of gates and conditions, such as `AP50 >= champion.AP50 + 0.01 and p < 0.05`: a small grammar, never `eval`.

Numbers, texts in quotes, true and false, figures by name, + - * /, one comparison at a time, and, or, not, parentheses,
abs, min and max. A name is words with dots between them; a word with other characters stands in backticks:
`AP50 small`, champion.`val/ap50`. A rule becomes a list of steps for a stack: answering it nests no calls, and reading
it nests at most as many as it has parentheses, functions and signs inside one another.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid
from inference.pipelines.rule_parts import COMPARISONS, FUNCTIONS, NOT, PRECEDENCE, SIGN, Part, Sort, place, split

MAX_LENGTH = 1000  # characters
MAX_DEPTH = 50  # parentheses, functions and signs inside one another
MAX_SUGGESTIONS = 5  # names that a refusal lists

Value = float | str | bool | None  # value of a name; None and NaN: measured without a result


class NoAnswer(DomainError, code="no_answer", status=400):
    """The rule has no answer with these figures: it has failed, and this says why."""


class UnknownFigure(NoAnswer, code="unknown_figure"):
    """The rule names a metric that was not measured."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A rule that was read.

    Attributes:
        text: as written.
        code: what to do in this order: ("push", number, text or answer), ("name", name), ("do", operator, operands).
    """

    text: str
    code: tuple[tuple[str, Value, int], ...] = field(repr=False)

    def names(self) -> frozenset[str]:
        """The figures or parameters that it needs, without backticks."""
        return frozenset(str(value) for act, value, _operands in self.code if act == "name")

    def value(self, figures: Mapping[str, Value]) -> bool:
        """Return whether the rule holds. A comparison with NaN, whatever is made of it, never passes.

        Raises:
            UnknownFigure: one of its names is not among `figures`, also where the rest would decide.
            NoAnswer: a text is used where a number is needed, or vice versa.
        """
        _check_known(self.names(), figures)
        stack: list[Value] = []
        sound = True
        for action, value, operands in self.code:
            if action == "push":
                stack.append(value)
            elif action == "name":
                stack.append(_to_value(str(value), figures[str(value)]))
            else:
                args = stack[len(stack) - operands :]
                del stack[len(stack) - operands :]
                if str(value) in COMPARISONS and any(isinstance(arg, float) and math.isnan(arg) for arg in args):
                    sound = False
                stack.append(_apply(str(value), args))
        answer = stack.pop()
        if not isinstance(answer, bool):
            raise NoAnswer(_("“%(rule)s” is not a yes/no value: compare it with a value.") % {"rule": self.text})
        return answer and sound


def parse(text: str, *, switches: bool = False) -> Expression:
    """Read a rule.

    Args:
        switches: a name may stand where yes or no is needed, as for a parameter that is true or false; figures are
            numbers, so rules of gates have to compare them.

    Raises:
        Invalid: it is no rule; the sentence says where.
    """
    if not isinstance(text, str) or not text.strip():
        raise Invalid(_("Enter a rule, such as AP50 >= 0.85."))
    if len(text) > MAX_LENGTH:
        raise Invalid(
            _("A rule can have at most %(most)s characters; this one has %(has)s.")
            % {"most": MAX_LENGTH, "has": len(text)}
        )
    reader = _Reader(text, switches)
    reader.read_rule()
    return Expression(text, tuple(reader.code))


class _Reader:
    """Reads by precedence climbing; what it writes is in postfix order."""

    def __init__(self, rule: str, switches: bool) -> None:
        self.rule, self.switches = rule, switches
        self.parts, self.at = split(rule), 0
        self.code: list[tuple[str, Value, int]] = []

    def read_rule(self) -> None:
        first = self.parts[0]
        sort = self.operation(0, 0)
        if self.now.sort is not Sort.END:
            raise self.refused(self.now, _("an operator is missing before this, or this is redundant."))
        self.need_yesno(sort, first)

    @property
    def now(self) -> Part:
        return self.parts[self.at]

    def next_part(self) -> Part:
        self.at += 1
        return self.parts[self.at - 1]

    def refused(self, part: Part, what: str) -> Invalid:
        return Invalid(_("%(here)s: %(what)s") % {"here": place(self.rule, part.at), "what": what})

    def operation(self, tighter: int, depth: int) -> Sort:
        """Read operands joined by operators that bind tighter than `tighter`."""
        first = self.now
        sort, compared = self.operand(tighter, depth), False
        while self.now.sort is Sort.SIGN and PRECEDENCE.get(self.now.text, 0) > tighter:
            sign = self.next_part()
            if compared and sign.text in COMPARISONS:
                raise self.refused(
                    sign, _("compare two values at a time and combine with and: 0.5 < AP50 and AP50 < 0.9.")
                )
            second = self.now
            right = self.operand_after(sign, depth)
            sort = self.joined(sign, (sort, first), (right, second))
            compared = sign.text in COMPARISONS
        return sort

    def operand_after(self, sign: Part, depth: int) -> Sort:
        return self.operation(PRECEDENCE[sign.text], depth)

    def operand(self, tighter: int, depth: int) -> Sort:
        part = self.next_part()
        if depth > MAX_DEPTH:
            raise self.refused(part, _("at most %(most)s nested parentheses.") % {"most": MAX_DEPTH})
        if part.sort in (Sort.NUMBER, Sort.TEXT, Sort.YESNO):
            self.code.append(("push", part.value, 0))
            return part.sort
        if part.sort is Sort.NAME:
            if part.text in FUNCTIONS and self.now.text == "(":
                return self.function(part, depth)
            self.code.append(("name", part.value, 0))
            return Sort.NAME
        if part.text == "(":
            sort = self.operation(0, depth + 1)
            self.close()
            return sort
        if part.text == "not" and tighter <= NOT:
            first = self.now
            self.need_yesno(self.operation(NOT, depth + 1), first)
            self.code.append(("do", "not", 1))
            return Sort.YESNO
        if part.text in ("-", "+"):
            first = self.now
            self.need_number(self.operation(SIGN, depth + 1), first)
            self.code.append(("do", part.text, 1))
            return Sort.NUMBER
        raise self.refused(part, _("a number, a name or a parenthesis is missing here."))

    def function(self, name: Part, depth: int) -> Sort:
        self.next_part()
        arg_count = 0
        while True:
            first = self.now
            self.need_number(self.operation(0, depth + 1), first)
            arg_count += 1
            if self.now.text != ",":
                break
            self.next_part()
        self.close()
        if (name.text == "abs") != (arg_count == 1):
            what = _("abs requires one value, min and max require two or more.")
            raise self.refused(name, what)
        self.code.append(("do", name.text, arg_count))
        return Sort.NUMBER

    def close(self) -> None:
        if self.now.text != ")" or self.now.sort is not Sort.SIGN:
            raise self.refused(self.now, _("a closing parenthesis is missing here."))
        self.next_part()

    def joined(self, sign: Part, left: tuple[Sort, Part], right: tuple[Sort, Part]) -> Sort:
        self.code.append(("do", sign.text, 2))
        if sign.text in ("and", "or"):
            self.need_yesno(*left)
            self.need_yesno(*right)
            return Sort.YESNO
        if sign.text in ("==", "!="):
            if Sort.NAME not in (left[0], right[0]) and left[0] is not right[0]:
                raise self.refused(sign, _("numbers, texts and yes/no values are never equal to one another."))
            return Sort.YESNO
        self.need_number(*left)
        self.need_number(*right)
        return Sort.YESNO if sign.text in COMPARISONS else Sort.NUMBER

    def need_yesno(self, sort: Sort, part: Part) -> None:
        if sort is Sort.NAME and self.switches:
            return
        if sort is not Sort.YESNO:
            raise self.refused(
                part, _("a yes/no value is required here: compare it with a value, such as AP50 >= 0.85.")
            )

    def need_number(self, sort: Sort, part: Part) -> None:
        if sort not in (Sort.NUMBER, Sort.NAME):
            raise self.refused(part, _("a number is required here."))


def _check_known(names: frozenset[str], figures: Mapping[str, Value]) -> None:
    unknown = sorted(names - figures.keys())
    if not unknown:
        return
    similar = _similar_names(unknown[0], list(figures))
    name = ", ".join(unknown)
    message = wording.message("pipeline.no_figure", name=name)
    if similar:
        message = wording.message("pipeline.no_figure_near", name=name, near=", ".join(similar))
    raise UnknownFigure(message, unknown=unknown)


def _similar_names(name: str, names: list[str]) -> list[str]:
    """Return known names that are similar, as a rule would write them."""
    lower = {candidate.lower(): candidate for candidate in names if len(candidate) <= MAX_LENGTH}
    matches = [
        candidate
        for low, candidate in lower.items()
        if name.lower() in low.replace("/", ".").split(".") or low == name.lower()
    ]
    matches += [lower[low] for low in difflib.get_close_matches(name.lower(), list(lower), n=MAX_SUGGESTIONS)]
    return [written(candidate) for candidate in dict.fromkeys(matches)][:MAX_SUGGESTIONS]


def written(name: str) -> str:
    """Return a name as rules write it: in backticks where it has characters other than letters, digits and dots."""
    parts = name.split(".")
    plain = all(part.isidentifier() for part in parts[:1]) and all(part.replace("_", "a").isalnum() for part in parts)
    return name if plain and name not in PRECEDENCE and name not in ("not", "true", "false") else f"`{name}`"


def _to_value(name: str, value: Value) -> Value:
    if isinstance(value, bool | str):
        return value
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan
    except (TypeError, ValueError) as exc:
        raise NoAnswer(_("%(name)s is neither a number nor a text.") % {"name": name}) from exc


def _apply(operator: str, operands: list[Value]) -> Value:
    if operator in ("and", "or", "not"):
        if not all(isinstance(operand, bool) for operand in operands):
            raise NoAnswer(_("“%(what)s” requires yes/no values on both sides.") % {"what": operator})
        return {"and": all(operands), "or": any(operands), "not": not operands[0]}[operator]
    if operator in ("==", "!="):
        if len({type(operand) for operand in operands}) > 1:
            message = _("%(one)s and %(other)s cannot be compared: one is a number, the other is not.")
            raise NoAnswer(message % {"one": _shown(operands[0]), "other": _shown(operands[1])})
        return (operands[0] == operands[1]) == (operator == "==")
    numbers = [operand for operand in operands if isinstance(operand, float)]
    if len(numbers) < len(operands):
        odd = next(operand for operand in operands if not isinstance(operand, float))
        raise NoAnswer(
            _("“%(what)s” requires numbers; %(value)s is not a number.") % {"what": operator, "value": _shown(odd)}
        )
    return _arithmetic(operator, numbers)


def _shown(value: Value) -> str:
    return f"“{value[:80]}”" if isinstance(value, str) else f"{value}"


def _arithmetic(operator: str, numbers: list[float]) -> float | bool:
    first, second = numbers[0], numbers[-1]
    match operator:
        case "<":
            return first < second
        case "<=":
            return first <= second
        case ">":
            return first > second
        case ">=":
            return first >= second
        case "*":
            return first * second
        case "/":
            return first / second if second else math.nan
        case "+":
            return first + second if len(numbers) == 2 else first
        case "-":
            return first - second if len(numbers) == 2 else -first
        case "abs":
            return abs(first)
        case _:  # NaN in any place, which min and max of Python look past
            return math.nan if any(map(math.isnan, numbers)) else (min if operator == "min" else max)(numbers)
