"""Keyset pages for HTML lists: page 10,000 costs what page 1 costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest


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
    """One page of `rows` in their own order by `?page=`; for lists of thousands that people sort as they like."""
    asked = request.GET.get("page", "1")
    number = max(1, int(asked)) if asked.isdecimal() and len(asked) < 7 else 1
    found = list(rows[(number - 1) * size : number * size + 1])

    def link(to: int) -> str:
        query = request.GET.copy()
        query["page"] = str(to)
        return f"?{query.urlencode()}"

    return Page(
        rows=found[:size],
        next_url=link(number + 1) if len(found) > size else "",
        previous_url=link(number - 1) if number > 1 else "",
        total=rows.count(),
    )


def page(request: HttpRequest, rows: QuerySet[Any], *, size: int = 50, key: str = "pk", count: bool = True) -> Page:
    """One page of `rows`, newest first by a unique `key`; `?before=` and `?after=` hold the key.

    Args:
        key: a unique, ordered column; "-" in front of it is implied.
        count: whether to count all rows (cheap for thousands, not for millions).
    """
    before, after = request.GET.get("before", ""), request.GET.get("after", "")
    total = rows.count() if count else None
    if after.isdigit():
        found = list(rows.filter(**{f"{key}__gt": int(after)}).order_by(key)[: size + 1])
        more_back, found = len(found) > size, found[:size][::-1]
        more_forward = True
    else:
        asked = rows.filter(**{f"{key}__lt": int(before)}) if before.isdigit() else rows
        found = list(asked.order_by(f"-{key}")[: size + 1])
        more_forward, found = len(found) > size, found[:size]
        more_back = before.isdigit()

    def link(name: str, row: Any) -> str:
        query = request.GET.copy()
        query.pop("before", None)
        query.pop("after", None)
        query[name] = str(getattr(row, key))
        return f"?{query.urlencode()}"

    return Page(
        rows=found,
        next_url=link("before", found[-1]) if found and more_forward else "",
        previous_url=link("after", found[0]) if found and more_back else "",
        total=total,
    )
