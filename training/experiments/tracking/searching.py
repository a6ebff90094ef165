"""Searching runs in the database: comparisons and orders of MLflow's language as one query."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Case, CharField, F, FloatField, OuterRef, Q, Subquery, Value, When
from django.db.models.expressions import Func
from django.db.models.fields import BooleanField
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training.experiments.models import Param, RunCurve, Tag
from training.experiments.querysets import RunQuerySet
from training.experiments.tracking import figures, runs
from training.experiments.tracking.filters import ATTRIBUTE, METRIC, PARAM, Comparison, Order
from training.experiments.tracking.models import MetricName
from workers.core.models import HAS_VALUE, Curve

TEXTS = {"=", "!=", "LIKE", "ILIKE", "IN", "NOT IN", "IS NULL", "IS NOT NULL"}
NUMBERS = {"=": "exact", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


class Like(Func):
    """SQL's LIKE, minding case or not. SQLite's own does not mind it, but its GLOB does."""

    output_field = BooleanField()

    def __init__(self, value: Any, pattern: str, *, minds_case: bool) -> None:
        self.template = "%(expressions)s"
        if connection.vendor == "sqlite":
            self.arg_joiner = " GLOB " if minds_case else " LIKE "
            pattern = _as_glob(pattern) if minds_case else pattern
        else:
            self.arg_joiner = " LIKE " if minds_case else " ILIKE "
            pattern = pattern.replace("\\", "\\\\")
        super().__init__(value, Value(pattern))


def _as_glob(pattern: str) -> str:
    signs = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    return "".join(signs.get(sign, sign) for sign in pattern)


def narrowed(rows: RunQuerySet, comparisons: Sequence[Comparison]) -> RunQuerySet:
    """Return the runs for which all comparisons hold.

    Raises:
        Invalid: an attribute that is none, or a sign that does not fit.
    """
    for number, comparison in enumerate(comparisons):
        if comparison.kind == ATTRIBUTE and comparison.key == "status":
            rows = rows.filter(_of_status(comparison))
            continue
        name = f"searched_{number}"
        rows = rows.alias(**{name: _value(comparison.kind, comparison.key)})
        rows = rows.filter(_holds(name, comparison))
    return rows


def ordered(rows: RunQuerySet, orders: Sequence[Order]) -> RunQuerySet:
    """Return runs in the requested order, those without a value last. Without any order: newest first."""
    columns: list[Any] = []
    for number, order in enumerate(orders):
        name = f"ordered_{number}"
        value = _status_word() if (order.kind, order.key) == (ATTRIBUTE, "status") else _value(order.kind, order.key)
        rows = rows.alias(**{name: value})
        columns.append(F(name).desc(nulls_last=True) if order.descending else F(name).asc(nulls_last=True))
    return rows.order_by(*columns, "-created_at", "-pk")


def _value(kind: str, key: str) -> Any:
    if kind == ATTRIBUTE:
        return _attribute(key)
    if kind == METRIC:
        return _metric(key)
    model, column = (Param, "text") if kind == PARAM else (Tag, "value")
    return Coalesce(
        Subquery(model._default_manager.filter(run=OuterRef("pk"), key=key).values(column)[:1]),
        *([_tag_of_column(key)] if key in {runs.NAME, runs.NOTE, runs.PARENT, runs.USER} and kind != PARAM else []),
        Value(None, CharField()),
    )


def _tag_of_column(key: str) -> Any:
    return {
        runs.NAME: _name(),
        runs.NOTE: Case(When(~Q(notes=""), then=F("notes"))),
        runs.PARENT: F("parent__uid"),
        runs.USER: F("owner__username"),
    }[key]


def _metric(name: str) -> Any:
    keys = {figures.key_of(name, of_job=of_job) for of_job in (False, True)}
    keys.update(MetricName.objects.filter(name=name).values_list("key", flat=True).distinct())
    own = RunCurve.objects.filter(HAS_VALUE, run=OuterRef("pk"), key__in=keys).values("value")[:1]
    newest = Curve.objects.filter(HAS_VALUE, attempt__job=OuterRef("job"), key__in=keys).order_by("-attempt__number")
    return Coalesce(Subquery(own), Subquery(newest.values("value")[:1]), output_field=FloatField())


def _attribute(key: str) -> Any:
    expressions = {
        "run_id": F("uid"),
        "run_name": _name(),
        "Run name": _name(),
        "user_id": F("owner__username"),
        "artifact_uri": F("uid"),
        "start_time": Coalesce(F("job__started_at"), F("created_at")),
        "created": Coalesce(F("job__started_at"), F("created_at")),
        "end_time": Coalesce(F("job__ended_at"), F("ended_at")),
    }
    if key not in expressions:
        names = ", ".join(sorted({*expressions, "status"} - {"Run name"}))
        raise Invalid(
            _("Unknown attribute %(name)s. Available attributes: %(known)s.") % {"name": key[:50], "known": names}
        )
    return expressions[key]


def _name() -> Any:
    return Case(When(~Q(name=""), then=F("name")), default=F("job__name"), output_field=CharField())


def _of_status(comparison: Comparison) -> Q:
    statuses = comparison.value if comparison.sign in {"IN", "NOT IN"} else [comparison.value]
    if comparison.sign not in {"=", "!=", "IN", "NOT IN"} or not all(isinstance(word, str) for word in statuses):
        raise _unfit(comparison)
    wanted = [word.upper() for word in statuses]
    states = [state for word in wanted for state in runs.OF_JOBS.get(word, ())]
    alone = [runs.STATES[word] for word in wanted if word in runs.STATES and word != "SCHEDULED"]
    condition = Q(job__state__in=states) | Q(job=None, state__in=alone)
    return condition if comparison.sign in {"=", "IN"} else ~condition


def _status_word() -> Any:
    of_jobs = [When(job__state__in=states, then=Value(word)) for word, states in runs.OF_JOBS.items()]
    alone = [When(state=state, then=Value(word)) for word, state in runs.STATES.items() if word != "SCHEDULED"]
    return Case(*of_jobs, *alone, default=Value("RUNNING"), output_field=CharField())


def _holds(name: str, comparison: Comparison) -> Any:
    if comparison.sign in {"IS NULL", "IS NOT NULL"}:
        return Q(**{f"{name}__isnull": comparison.sign == "IS NULL"})
    if comparison.kind == METRIC or comparison.key in {"start_time", "created", "end_time"}:
        value = _number(comparison)
        if comparison.sign == "!=":
            return Q(**{f"{name}__isnull": False}) & ~Q(**{name: value})
        if comparison.sign not in NUMBERS:
            raise _unfit(comparison)
        return Q(**{f"{name}__{NUMBERS[comparison.sign]}": value})
    if comparison.sign not in TEXTS:
        raise _unfit(comparison)
    if comparison.sign in {"LIKE", "ILIKE"}:
        return Q(Like(F(name), _text(comparison), minds_case=comparison.sign == "LIKE"))
    if comparison.sign in {"IN", "NOT IN"}:
        among = Q(**{f"{name}__in": comparison.value})
        return among if comparison.sign == "IN" else Q(**{f"{name}__isnull": False}) & ~among
    same = Q(**{name: _text(comparison)})
    return same if comparison.sign == "=" else Q(**{f"{name}__isnull": False}) & ~same


def _number(comparison: Comparison) -> Any:
    if not isinstance(comparison.value, float):
        raise _unfit(comparison)
    if comparison.kind == METRIC:
        return comparison.value
    try:
        return datetime.fromtimestamp(comparison.value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise _unfit(comparison) from None


def _text(comparison: Comparison) -> str:
    if not isinstance(comparison.value, str):
        raise _unfit(comparison)
    return comparison.value.rsplit("/", 1)[-1] if comparison.key == "artifact_uri" else comparison.value


def _unfit(comparison: Comparison) -> Invalid:
    message = _(
        "%(name)s cannot be compared by %(sign)s with this value: metrics and times require numbers, all others text."
    )
    return Invalid(
        message % {"name": f"{comparison.kind}.{comparison.key}"[:100], "sign": comparison.sign}, field="filter"
    )
