"""The filter of the run table: an expression over parameters, figures, tags and facts, read into a query.

    params.lr < 0.01 and best(val/accuracy) > 0.9 and not archived
    state = running or tag:golden
    name ~ "resnet" and dataset in (cells, "nuts v2") and created > 2026-01-31

`and`, `or`, `not` and brackets as everywhere. A bare key is a figure's newest value; `last`, `min`, `max` and `best`
name another one. Keys with other signs stand in `backquotes`, words with blanks in quotes. MLflow's `metrics.`,
`params.`, `tags.` and `attributes.` are known. Whatever has no such value fits no comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from django.db.models import Exists, OuterRef, Q
from django.db.models import lookups as sql
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training.experiments import conditions, figure_sql
from training.experiments.conditions import Compare, Literal
from training.experiments.models import Param, Star, Tag
from training.experiments.querysets import RunQuerySet

LONGEST, MAX_CONDITIONS, DEEPEST = 2000, 50, 20
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?)
      | (?P<number>[+-]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d+)?(?:(?:ms|s|min|h|d)\b)?(?![\w./@-]))
      | (?P<op><=|>=|!=|==|=|<|>|!?~|\(|\)|,)
      | (?P<text>"[^"]*"|'[^']*')
      | (?P<key>`[^`]+`|[\w%@][\w./@%:-]*)
    )""",
    re.VERBOSE,
)
ANYWHERE = {"contains": "~", "like": "~", "ilike": "~"}


@dataclass(frozen=True)
class Word:
    """A token of the expression."""

    kind: str  # time, number, op, text, key; "" at the end
    text: str
    position: int

    @property
    def bare(self) -> str:
        """Without its quotes."""
        return self.text[1:-1] if self.kind == "text" or self.text.startswith("`") else self.text


def narrowed(runs: RunQuerySet, text: str, *, user: Any) -> RunQuerySet:
    """Return those of `runs` that an expression describes; all for an empty one.

    Args:
        user: whose stars `starred` means.

    Raises:
        Invalid: it cannot be read; says where and what would do.
    """
    if not text.strip():
        return runs
    return runs.alias(**figure_sql.named()).filter(_Reader(text, user).parse_expression())


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str, user: Any) -> None:
        if len(text) > LONGEST:
            message = _("The filter is longer than %(limit)s characters.") % {"limit": LONGEST}
            raise Invalid(message, field="filter")
        self.user = user
        self.words = list(self._words(text))
        self.at, self.depth, self.count = 0, 0, 0

    def _words(self, text: str) -> list[Word]:
        tokens, position = [], 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                rest = text[position:].strip()[:20]
                message = _("The filter is invalid at “%(rest)s”. Quote words with spaces or special characters.")
                raise Invalid(message % {"rest": rest}, field="filter")
            kind = match.lastgroup or ""
            tokens.append(Word(kind, match[kind], match.start(kind)))
            position = match.end()
        return [*tokens, Word("", "", len(text))]

    @property
    def next(self) -> Word:
        return self.words[self.at]

    def advance(self) -> Word:
        word = self.next
        self.at += 1
        return word

    def takes(self, *texts: str) -> bool:
        """Whether one of these comes next, which is then taken."""
        if self.next.kind in ("op", "key") and self.next.text.lower() in texts:
            self.at += 1
            return True
        return False

    def refuse(self, wanted: str) -> NoReturn:
        if not self.next.kind:
            message = _("The filter is incomplete: %(wanted)s is missing.") % {"wanted": wanted}
        else:
            message = _("The filter contains “%(found)s” where %(wanted)s is expected.")
            message %= {"found": self.next.text[:40], "wanted": wanted}
        raise Invalid(message, field="filter")

    def parse_expression(self) -> Q:
        condition = self.either()
        if self.next.kind:
            self.refuse(_("and, or, or the end"))
        return condition

    def either(self) -> Q:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Invalid(_("The filter has too many nested brackets."), field="filter")
        condition = self.both()
        while self.takes("or"):
            condition |= self.both()
        self.depth -= 1
        return condition

    def both(self) -> Q:
        condition = self.one()
        while self.takes("and"):
            condition &= self.one()
        return condition

    def one(self) -> Q:
        self.count += 1
        if self.count > MAX_CONDITIONS:
            message = _("The filter has more than %(limit)s conditions.") % {"limit": MAX_CONDITIONS}
            raise Invalid(message, field="filter")
        is_negated = False
        while self.takes("not"):
            is_negated = not is_negated
        if self.takes("("):
            condition = self.either()
            if not self.takes(")"):
                self.refuse(")")
        else:
            condition = self.condition()
        return ~condition if is_negated else condition

    def condition(self) -> Q:
        if self.takes("has"):
            return self.having(self._key(_("the name of a parameter, a metric or a tag")))
        subject = self._key(_("a parameter, a metric, a tag or a property"))
        if not subject.text.startswith("`"):
            if subject.text.lower() in figure_sql.KINDS and self.takes("("):
                key = self._key(_("the name of a metric"))
                if not self.takes(")"):
                    self.refuse(")")
                return self.compared(conditions.figure(subject.text.lower(), key.bare))
            if subject.text.startswith("tag:"):
                return Q(Exists(Tag.objects.filter(run=OuterRef("pk"), key=subject.text[4:])))
            flag = self.flag(subject.text.lower())
            if flag is not None:
                return flag
        return self.compared(self.meant(subject))

    def _key(self, wanted: str) -> Word:
        if self.next.kind != "key":
            self.refuse(wanted)
        word = self.advance()
        if word.text.endswith(".") and self.next.text.startswith(("`", '"')):  # params.`a b`
            return Word("key", word.text + self.advance().bare, word.position)
        return word

    def flag(self, name: str) -> Q | None:
        """What is simply so or not."""
        if name == "archived":
            return Q(archived=True)
        if name == "starred":
            return Q(Exists(Star.objects.filter(run=OuterRef("pk"), user=self.user)))
        return None

    def having(self, word: Word) -> Q:
        """A run that has a parameter, a tag or a figure of this name."""
        before, rest = _divided(word.text)
        if before in ("params", "param") and rest:
            return Q(Exists(Param.objects.filter(run=OuterRef("pk"), key=rest)))
        if before in ("tags", "tag") and rest:
            return Q(Exists(Tag.objects.filter(run=OuterRef("pk"), key=rest)))
        key = rest if before in ("metrics", "metric") and rest else word.bare
        return Q(sql.IsNull(figure_sql.figure(figure_sql.LAST, key), False))

    def meant(self, word: Word) -> Compare:
        """What a name without brackets means."""
        if word.text.startswith("`"):
            return conditions.figure(figure_sql.LAST, word.bare)
        before, rest = _divided(word.text)
        if before in ("params", "param", "parameters") and rest:
            return conditions.param(rest)
        if before in ("tags", "tag") and rest:
            return conditions.tag(rest)
        if before in ("metrics", "metric") and rest:
            return conditions.figure(figure_sql.LAST, rest)
        name = rest if before in ("attributes", "attribute") and rest else word.text
        return conditions.FACTS.get(name.lower()) or conditions.figure(figure_sql.LAST, word.text)

    def compared(self, compare: Compare) -> Q:
        if self.takes("in"):
            return compare("in", self._list())
        op = self.next.text.lower()
        op = ANYWHERE.get(op, op)
        if op not in conditions.LIKE and op not in ("~", "!~", "!="):
            self.refuse(_("=, <, >, ~ or in"))
        self.advance()
        literal = self._literal()
        if op == "!=":
            return ~compare("=", [literal]) & compare("has", [])
        if op == "!~":
            return ~compare("~", [literal]) & compare("has", [])
        return compare(op, [literal])

    def _list(self) -> list[Literal]:
        if not self.takes("("):
            self.refuse("(")
        literals = [self._literal()]
        while self.takes(","):
            literals.append(self._literal())
        if not self.takes(")"):
            self.refuse(")")
        return literals

    def _literal(self) -> Literal:
        if self.next.kind not in ("number", "text", "time", "key"):
            self.refuse(_("a number, a word or a date"))
        word = self.advance()
        return Literal(
            word.bare.strip("%") if word.kind == "text" else word.bare,
            conditions.number(word.bare),
            conditions.moment(word.bare),
        )


def _divided(text: str) -> tuple[str, str]:
    """Split a text at its first dot: "params", "lr"."""
    before, _dot, rest = text.partition(".")
    return before.lower(), rest.strip("`")
