"""Conditions of the run filter: parameters, figures, tags and facts, compared with numbers, words and times."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import DurationField, Exists, ExpressionWrapper, F, OuterRef, Q, Value
from django.db.models import lookups as sql
from django.db.models.functions import Coalesce, Now
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training.experiments import figure_sql
from training.experiments.models import Param, Tag
from workers.core.states import GROUPS, JobState

_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400, "": 1}
_LOOKUPS: dict[str, Any] = {
    "<": sql.LessThan, "<=": sql.LessThanOrEqual, ">": sql.GreaterThan, ">=": sql.GreaterThanOrEqual,
    "=": sql.Exact, "==": sql.Exact,
}  # fmt: skip
LIKE = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "=": "exact", "==": "exact"}
_MLFLOW_STATES = {"finished": "completed", "killed": "stopped", "succeeded": "succeeded"}  # MLflow's words for states


@dataclass(frozen=True)
class Literal:
    """What something is compared with."""

    text: str
    number: float | None
    moment: datetime | None


Compare = Callable[[str, list[Literal]], Q]


def number(word: str) -> float | None:
    if word.lower() in ("true", "false"):
        return float(word.lower() == "true")
    match = re.fullmatch(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)(ms|s|min|h|d)?", word)
    return float(match[1]) * _SECONDS[match[2] or ""] if match and match[1].count(".") < 2 else None


def moment(word: str) -> datetime | None:
    try:
        moment = parse_datetime(word.replace("Z", "+00:00"))
        day = None if moment else parse_date(word)
    except ValueError:
        return None
    if day:
        moment = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - gets the reader's zone below
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=get_current_timezone())).astimezone(UTC)


def _numbers(literals: list[Literal], name: str) -> list[float]:
    wrong = [literal.text for literal in literals if literal.number is None]
    if wrong:
        message = _("%(name)s must be compared with a number, not with “%(text)s”.") % {
            "name": name,
            "text": wrong[0][:40],
        }
        raise Invalid(message, field="filter")
    return [literal.number for literal in literals if literal.number is not None]


def figure(kind: str, key: str) -> Compare:
    def compare(op: str, literals: list[Literal]) -> Q:
        expression = figure_sql.figure(kind, key)
        if op == "has":
            return Q(sql.IsNull(expression, False))
        numbers = _numbers(literals, key)
        if op == "in":
            return Q(sql.In(expression, numbers))
        if op == "~":
            raise Invalid(_("%(name)s is a number: use =, < or >.") % {"name": key}, field="filter")
        return Q(_LOOKUPS[op](expression, Value(numbers[0])))

    return compare


def param(key: str) -> Compare:
    """By number where both are one, else by text."""

    def compare(op: str, literals: list[Literal]) -> Q:
        own = Param.objects.filter(run=OuterRef("pk"), key=key)
        if op == "has":
            return Q(Exists(own))
        if op == "~":
            return Q(Exists(own.filter(text__icontains=literals[0].text)))
        if op in ("=", "==", "in"):
            same = Q(text__in=[literal.text for literal in literals])
            numbers = [literal.number for literal in literals if literal.number is not None]
            return Q(Exists(own.filter(same | Q(number__in=numbers) if numbers else same)))
        return Q(Exists(own.filter(**{f"number__{LIKE[op]}": _numbers(literals, key)[0]})))

    return compare


def tag(key: str) -> Compare:
    def compare(op: str, literals: list[Literal]) -> Q:
        own = Tag.objects.filter(run=OuterRef("pk"), key=key)
        if op == "has":
            return Q(Exists(own))
        if op == "in":
            return Q(Exists(own.filter(value__in=[literal.text for literal in literals])))
        if op == "~":
            return Q(Exists(own.filter(value__icontains=literals[0].text)))
        return Q(Exists(own.filter(**{f"value__{LIKE[op]}": literals[0].text})))

    return compare


def _text(column: str) -> Compare:
    def compare(op: str, literals: list[Literal]) -> Q:
        if op == "has":
            return ~Q(**{column: ""}) & Q(**{f"{column}__isnull": False})
        if op == "~":
            return Q(**{f"{column}__icontains": literals[0].text})
        if op not in ("=", "==", "in"):
            raise Invalid(_("Compare text with =, ~ or in."), field="filter")
        either = Q()
        for literal in literals:
            either |= Q(**{f"{column}__iexact": literal.text})
        return either

    return compare


def _state(op: str, literals: list[Literal]) -> Q:
    if op == "has":
        return Q()
    states: set[str] = set()
    for literal in literals:
        word = _MLFLOW_STATES.get(literal.text.lower(), literal.text.lower())
        if word not in GROUPS and word not in JobState.values:
            choices = ", ".join([*GROUPS, *JobState.values])
            message = _("Unknown state “%(word)s”. Available states: %(known)s.") % {
                "word": literal.text[:40],
                "known": choices,
            }
            raise Invalid(message, field="filter")
        states |= set(map(str, GROUPS.get(word, (word,))))
    return Q(state_word__in=states)


def _when(column: str) -> Compare:
    def compare(op: str, literals: list[Literal]) -> Q:
        if op == "has":
            return Q(**{f"{column}__isnull": False})
        moment = literals[0].moment
        if moment is None:
            message = _("A time must be written as 2026-01-31 or 2026-01-31T18:30, not “%(text)s”.")
            raise Invalid(message % {"text": literals[0].text[:40]}, field="filter")
        if op not in LIKE:
            raise Invalid(_("Compare a time with < and >."), field="filter")
        return Q(**{f"{column}__{LIKE[op]}": moment})

    return compare


def _count(expression: Callable[[], Any], name: str) -> Compare:
    def compare(op: str, literals: list[Literal]) -> Q:
        if op == "has":
            return Q(sql.IsNull(expression(), False))
        if op == "~":
            raise Invalid(_("%(name)s is a number: use =, < or >.") % {"name": name}, field="filter")
        numbers = _numbers(literals, name)
        return Q(sql.In(expression(), numbers)) if op == "in" else Q(_LOOKUPS[op](expression(), Value(numbers[0])))

    return compare


def span() -> Any:
    """How long a run took, or has taken so far, as an expression."""
    ended = Coalesce("job__ended_at", "ended_at", Now())
    return ExpressionWrapper(ended - Coalesce("job__started_at", "created_at"), DurationField())


def _took(op: str, literals: list[Literal]) -> Q:
    if op == "has":
        return Q()
    if op not in LIKE:
        raise Invalid(_("Compare duration with < and >, such as duration > 30min."), field="filter")
    seconds = min(_numbers(literals, "duration")[0], 1e9)
    return Q(_LOOKUPS[op](span(), Value(timedelta(seconds=seconds), DurationField())))


FACTS: dict[str, Compare] = {
    "name": _text("shown_name"),
    "run_name": _text("shown_name"),
    "state": _state,
    "status": _state,
    "owner": _text("owner__username"),
    "user_id": _text("owner__username"),
    "experiment": _text("experiment"),
    "kind": _text("job__kind"),
    "preset": _text("job__training__preset"),
    "dataset": _text("job__training__version_label"),
    "cluster": _text("job__cluster__name"),
    "notes": _text("notes"),
    "id": _count(lambda: F("pk"), "id"),
    "cards": _count(lambda: F("job__nodes") * F("job__gpus_per_node"), "cards"),
    "created": _when("created_at"),
    "ended": _when("ended"),
    "duration": _took,
}
