"""Search in lists and global search. Each app registers how its own things are found.

    search.register("dataset", _("Dataset"), "datasets", needs=Action.DATASETS_VIEW, find=searching.datasets)
    search.register_many(searching.kinds_of_jobs)  # one source for each entry of another registry

`find(user, text, limit)` returns hits from `visible_to(user)` only. Lists filter their rows with `filter_by_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Q, QuerySet
from django.urls import reverse

from aiplatform.lib.registry import Registry, dotted_name

MAX_QUERY_LENGTH = 100  # characters of a question that count
MAX_TERMS = 10  # words of a question that count
PER_KIND = 6  # hits of one kind


Rows = TypeVar("Rows", bound=QuerySet[Any])


def filter_by_text(rows: Rows, text: str, *columns: str) -> Rows:
    """Return those `rows` in which each word of `text` occurs in one of `columns`; all of them for an empty text."""
    for word in text.replace("\x00", "")[:MAX_QUERY_LENGTH].split()[:MAX_TERMS]:
        matches = Q()
        for column in columns:
            matches |= Q(**{f"{column}__icontains": word})
        rows = rows.filter(matches)
    return rows


@dataclass(frozen=True)
class Hit:
    """A search result: its name and its page."""

    name: str
    url: str


Find = Callable[[Any, str, int], Iterable[Hit]]


def in_rows(model: Any, column: str, page: str, order: str = "-pk") -> Find:
    """A `find` by one column of a table.

    Args:
        page: URL name of the page of a row.
        order: which rows come first.
    """

    def find(user: Any, text: str, limit: int) -> list[Hit]:
        rows = filter_by_text(model.objects.visible_to(user), text, column).order_by(order, "-pk")
        return [Hit(name, reverse(page, args=[pk])) for pk, name in rows.values_list("pk", column)[:limit]]

    return find


@dataclass(frozen=True)
class Source:
    key: str
    label: Any
    icon: str
    needs: str
    find: Find


SOURCES: Registry[Source] = Registry("kind of thing to search", name=lambda source: source.key)
FAMILIES: Registry[Callable[[], Iterable[Source]]] = Registry("family of things to search", name=dotted_name)
"""Each gives the sources that stand behind the entries of another registry, asked for at every search."""

register_many = FAMILIES.register


def register(key: str, label: Any, icon: str, *, needs: str, find: Find) -> None:
    """Add a kind of thing that search finds, for people who may do `needs`."""
    SOURCES.register(Source(key, label, icon, needs, find))


def search(user: Any, text: str) -> list[dict[str, str]]:
    """Return hits of every kind that this user may see: [{kind, icon, name, url}], a few of each kind.

    Args:
        text: part of a name; blank finds nothing. Cut at 100 characters.
    """
    query = text.replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    if not query:
        return []
    return [
        {"kind": str(source.label), "icon": source.icon, "name": hit.name, "url": hit.url}
        for source in (*SOURCES, *(source for family in FAMILIES for source in family()))
        if user.can(source.needs)
        for hit in source.find(user, query, PER_KIND)
    ]
