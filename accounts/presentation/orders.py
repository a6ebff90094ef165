"""How lists of people, groups and roles are sorted."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import Case, CharField, DateTimeField, F, Value, When
from django.db.models.functions import Coalesce, Concat, Lower

from aiplatform.lib.ordering import Ordering

NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # represents a missing sign-in: before every other

PEOPLE = Ordering(
    "-joined",
    joined="date_joined",
    username=Lower("username"),
    nickname=Lower("nickname"),
    email=Lower("email"),
    seen=Coalesce("last_login", Value(NEVER), output_field=DateTimeField()),
)
GROUPS = Ordering(
    "name",
    name=Lower("name"),
    people=F("member_count"),
    made="created_at",
)
ROLES = Ordering(
    "kind",
    kind=Concat(  # preset ones first, then by name
        Case(When(preset=True, then=Value("0")), default=Value("1")), Lower("name"), output_field=CharField()
    ),
    name=Lower("name"),
    people=F("people_count"),
    groups=F("group_count"),
)
