"""How lists are sorted: words of `?ordering=`, the same on pages and in the API, each with its column.

    ORDERING = Ordering("-created", created="pk", name="job__name", owner="job__owner__username")

A word means the rising order, with "-" in front the falling one. Only words that are named here reach the
database. A column is never null, since keyset pages compare with it; what may be missing is an expression that says
its replacement (`Coalesce(…)`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import FloatField, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from aiplatform.lib import keyset
from aiplatform.lib.errors import Invalid

PARAMETER = "ordering"
NO_FIGURE = -1.0  # represents a missing value: below every share


def first_figure(column: str, keys: Iterable[str]) -> Coalesce:
    """Return the sort key of rows with metrics: the first of `keys` that the JSON of `column` has, as a number."""
    values = (Cast(KT(f"{column}__{key}"), FloatField()) for key in keys)
    return Coalesce(*values, Value(NO_FIGURE))


class Ordering:
    """The orders in which one kind of list can be read.

    Args:
        default: the word where none is given.
        columns: word → column path, or an expression that every row has a value of.
    """

    def __init__(self, default: str, **columns: str | Combinable) -> None:
        self.default = default
        self.columns: Mapping[str, str | Combinable] = columns
        if default.removeprefix("-") not in columns:
            raise ValueError(f"{default} is none of {', '.join(columns)}")

    @property
    def words(self) -> tuple[str, ...]:
        """Every word, rising and falling."""
        return tuple(sign + word for word in self.columns for sign in ("", "-"))

    def chosen(self, params: Mapping[str, Any]) -> str:
        """Return the order that `params` (a query) names; the default for a missing or an unknown one."""
        word = str(params.get(PARAMETER, ""))
        return word if word.removeprefix("-") in self.columns else self.default

    def demanded(self, params: Mapping[str, Any]) -> str:
        """Return the order as `chosen` does, for scripts.

        Raises:
            Invalid: an unknown word, with the known ones.
        """
        word = str(params.get(PARAMETER, ""))
        if word and word.removeprefix("-") not in self.columns:
            raise Invalid(
                _("%(name)s must be one of %(words)s.") % {"name": PARAMETER, "words": ", ".join(self.words)},
                known=list(self.words),
            )
        return self.chosen(params)

    def column(self, word: str) -> str:
        """What to sort by, "-" in front for falling; an expression goes by the name that `with_column` gives it."""
        name = word.removeprefix("-")
        column = self.columns[name]
        return word[: -len(name)] + (column if isinstance(column, str) else f"by_{name}")

    def with_column(self, rows: QuerySet[Any], word: str) -> QuerySet[Any]:
        """Add the expression that `word` names to `rows`, if it is an expression."""
        name = word.removeprefix("-")
        column = self.columns[name]
        return rows if isinstance(column, str) else rows.annotate(**{f"by_{name}": column})

    def page(self, request: HttpRequest, rows: QuerySet[Any], **more: Any) -> ListPage:
        """Return one keyset page of `rows` in the order that the address names; `more` as in `keyset.page`."""
        word = self.chosen(request.GET)
        keyset_page = keyset.page(request, self.with_column(rows, word), order=self.column(word), **more)
        return ListPage(
            rows=keyset_page.rows,
            next_url=keyset_page.next_url,
            previous_url=keyset_page.previous_url,
            total=keyset_page.total,
            ordering=word,
            default=self.default,
            query=request.GET,
        )


@dataclass(frozen=True)
class ListPage(keyset.Page):
    """A page whose heads sort (`{% sort_head %}`)."""

    ordering: str = ""
    default: str = ""
    query: QueryDict | None = None

    def order_url(self, word: str) -> str:
        """The same list in another order, from its first page."""
        query = self.query.copy() if self.query is not None else QueryDict(mutable=True)
        for name in (keyset.FORWARD, keyset.BACKWARD, PARAMETER):
            query.pop(name, None)
        if word != self.default:
            query[PARAMETER] = word
        return f"?{query.urlencode()}"
