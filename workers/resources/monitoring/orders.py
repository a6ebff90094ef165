"""How lists of alarms, their rules and who is told of them are sorted."""

from __future__ import annotations

from django.db.models import Case, CharField, IntegerField, Value, When
from django.db.models.functions import Cast, Concat, Lower

from aiplatform.lib.ordering import Ordering
from workers.resources.monitoring.alarms import RANK
from workers.resources.monitoring.rules import RULES


def _rank(column: str) -> Case:
    """A severity as a number, the worst largest."""
    ranks = (When(**{column: severity}, then=Value(rank)) for severity, rank in RANK.items())
    return Case(*ranks, default=Value(0), output_field=IntegerField())


ENDED = Ordering("-ended", seen="seen_at", ended="ended_at", severity=_rank("severity"))
RULES_LISTED = Ordering(
    "made",
    made="pk",
    name=Case(  # labels are lazy: they sort in the reader's language
        *(When(key=key, then=Value(rule.label, output_field=CharField())) for key, rule in RULES.items()),
        default=Value(""),
        output_field=CharField(),
    ),
    enabled=Cast("enabled", IntegerField()),
    severity=_rank("severity"),
    lasts="for_s",
    sent=Cast("send", IntegerField()),
)
ADDRESSES = Ordering(
    "way",
    way=Concat("channel", Value(" "), Lower("target"), output_field=CharField()),
    address=Lower("target"),
    least=_rank("least"),
    enabled=Cast("enabled", IntegerField()),
)
