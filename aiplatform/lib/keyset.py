"""Keyset pages of HTML lists, in any order: late pages cost what the first costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest

FORWARD, BACKWARD = "next", "previous"
SEPARATOR = "~"


@dataclass(frozen=True)
class Page:
    """Rows of one page and the links around it; URLs keep every other query parameter."""

    rows: list[Any] = field(default_factory=list)
    next_url: str = ""
    previous_url: str = ""
    total: int | None = None

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def numbered(request: HttpRequest, rows: QuerySet[Any], *, size: int = 50) -> Page:
    """Return one page of `rows` in their own order by `?page=`, for long lists sorted by values that may be missing."""
    page_text = request.GET.get("page", "1")
    number = max(1, int(page_text)) if page_text.isdecimal() and len(page_text) < 7 else 1
    page_rows = list(rows[(number - 1) * size : number * size + 1])

    def link(to: int) -> str:
        query = request.GET.copy()
        query["page"] = str(to)
        return f"?{query.urlencode()}"

    return Page(
        rows=page_rows[:size],
        next_url=link(number + 1) if len(page_rows) > size else "",
        previous_url=link(number - 1) if number > 1 else "",
        total=rows.count(),
    )


def page(
    request: HttpRequest,
    rows: QuerySet[Any],
    *,
    order: str = "-pk",
    size: int = 50,
    count: bool = True,
    total: int | None = None,
) -> Page:
    """One page of `rows`, newest first unless another order is given; `?next=` or `?previous=` hold the last key.

    An unreadable key (an edited link) shows the first page.

    Args:
        order: "pk" or a column that is never null (`job__name` reaches through relations), "-" in front for falling;
            the primary key settles equal values.
        count: whether to count all rows (cheap for thousands, not for millions).
        total: how many there are, where that is known without counting.
    """
    column, falling = order.removeprefix("-"), order.startswith("-")
    forward, backward = request.GET.get(FORWARD, ""), request.GET.get(BACKWARD, "")
    try:
        if backward:
            page_rows = list(_beyond(rows, column, not falling, backward)[: size + 1])
            more_back, page_rows, more_forward = len(page_rows) > size, page_rows[:size][::-1], True
        else:
            beyond = _beyond(rows, column, falling, forward) if forward else _sorted(rows, column, falling)
            page_rows = list(beyond[: size + 1])
            more_back, more_forward, page_rows = bool(forward), len(page_rows) > size, page_rows[:size]
    except (ValueError, ValidationError):
        page_rows = list(_sorted(rows, column, falling)[: size + 1])
        more_back, more_forward, page_rows = False, len(page_rows) > size, page_rows[:size]

    if count and total is None:
        total = rows.count() if more_back or more_forward else len(page_rows)

    def link(name: str, row: Any) -> str:
        query = request.GET.copy()
        query.pop(FORWARD, None)
        query.pop(BACKWARD, None)
        value = value_of(row, column)
        query[name] = f"{value.isoformat() if hasattr(value, 'isoformat') else value}{SEPARATOR}{row.pk}"
        return f"?{query.urlencode()}"

    return Page(
        rows=page_rows,
        next_url=link(FORWARD, page_rows[-1]) if page_rows and more_forward else "",
        previous_url=link(BACKWARD, page_rows[0]) if page_rows and more_back else "",
        total=total,
    )


def value_of(row: Any, column: str) -> Any:
    """What `row` holds in `column`, through its relations: `job__name` is `row.job.name`."""
    for name in column.split("__"):
        row = getattr(row, name)
    return row


def _sorted(rows: QuerySet[Any], column: str, falling: bool) -> QuerySet[Any]:
    sign = "-" if falling else ""
    return rows.order_by(f"{sign}pk") if column == "pk" else rows.order_by(f"{sign}{column}", f"{sign}pk")


def _beyond(rows: QuerySet[Any], column: str, falling: bool, cursor: str) -> QuerySet[Any]:
    value, _separator, key = cursor.rpartition(SEPARATOR)
    lookup = "lt" if falling else "gt"
    number = int(key)
    if not 0 <= number < 1 << 63:
        raise ValueError(key)
    after = Q(**{f"pk__{lookup}": number})
    if column != "pk":
        after = Q(**{f"{column}__{lookup}": value}) | (Q(**{column: value}) & after)
    return _sorted(rows.filter(after), column, falling)
