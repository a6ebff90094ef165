"""Pages of answers: so many rows, and a token by which the next ones come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from aiplatform.lib import ids
from aiplatform.lib.errors import Invalid

MAX_ROWS = 1000
_FARTHEST = 10_000_000


def paged(
    rows: Sequence[Any] | QuerySet[Any], wanted: int, token: str, *, max_rows: int = MAX_ROWS
) -> tuple[list[Any], dict[str, str]]:
    """Return the rows of a page, at most `max_rows`, and {"next_page_token"} if there are more.

    Raises:
        Invalid: a token that no answer gave, or a number of rows that is none.
    """
    first = ids.number(token) if token else 0
    if first is None or first > _FARTHEST:
        raise Invalid(_("Invalid page token."), field="page_token")
    if wanted < 0 or wanted > _FARTHEST:
        raise Invalid(_("%(name)s must be an integer.") % {"name": "max_results"}, field="max_results")
    count = min(wanted or max_rows, max_rows)
    page = list(rows[first : first + count + 1])
    return page[:count], {"next_page_token": str(first + count)} if len(page) > count else {}
