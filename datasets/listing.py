"""Pages by key in any order: page 10,000 costs what page 1 costs. Works on a column and the primary key."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from aiplatform.lib.keyset import Page

SEPARATOR = "~"


def ordered_page(request: HttpRequest, rows: QuerySet[Any], *, order: str, size: int, total: int | None = None) -> Page:
    """One page of `rows` in `order` ("name", "-updated_at", "pk"); `?next=` or `?previous=` hold the last key.

    A key that cannot be read (a link somebody bent) shows the first page.
    """
    column, falling = order.removeprefix("-"), order.startswith("-")
    forward, backward = request.GET.get("next", ""), request.GET.get("previous", "")
    try:
        if backward:
            found = list(_beyond(rows, column, not falling, backward)[: size + 1])
            more_back, found, more_forward = len(found) > size, found[:size][::-1], True
        else:
            asked = _beyond(rows, column, falling, forward) if forward else _sorted(rows, column, falling)
            found = list(asked[: size + 1])
            more_back, more_forward, found = bool(forward), len(found) > size, found[:size]
    except (ValueError, ValidationError):
        found = list(_sorted(rows, column, falling)[: size + 1])
        more_back, more_forward, found = False, len(found) > size, found[:size]

    def link(name: str, row: Any) -> str:
        query = request.GET.copy()
        query.pop("next", None)
        query.pop("previous", None)
        value = getattr(row, column)
        query[name] = f"{value.isoformat() if hasattr(value, 'isoformat') else value}{SEPARATOR}{row.pk}"
        return f"?{query.urlencode()}"

    return Page(
        rows=found,
        next_url=link("next", found[-1]) if found and more_forward else "",
        previous_url=link("previous", found[0]) if found and more_back else "",
        total=total,
    )


def _sorted(rows: QuerySet[Any], column: str, falling: bool) -> QuerySet[Any]:
    sign = "-" if falling else ""
    return rows.order_by(f"{sign}pk") if column == "pk" else rows.order_by(f"{sign}{column}", f"{sign}pk")


def _beyond(rows: QuerySet[Any], column: str, falling: bool, cursor: str) -> QuerySet[Any]:
    value, _separator, key = cursor.rpartition(SEPARATOR)
    way = "lt" if falling else "gt"
    number = int(key)
    if not 0 <= number < 1 << 63:
        raise ValueError(key)
    after = Q(**{f"pk__{way}": number})
    if column != "pk":
        after = Q(**{f"{column}__{way}": value}) | (Q(**{column: value}) & after)
    return _sorted(rows.filter(after), column, falling)
