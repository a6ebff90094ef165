"""Columns of related rows: a list that shows the names of an account does not read its other thirty columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import QuerySet

Rows = TypeVar("Rows", bound="QuerySet[Any]")

#: What `User.get_full_name` and `str(user)` read.
USER_NAMES = ("username", "nickname")


def narrow(rows: Rows, **relations: Iterable[str]) -> Rows:
    """Read only some columns of the rows that `rows` load by `select_related`.

    Args:
        relations: path of a relation, as in `version__dataset` → the columns to read. Keys are read in any case.
            Another column is read from the database when code asks for it, row by row.
    """
    unread = []
    for path, columns in relations.items():
        model: Any = rows.model
        for name in path.split("__"):
            model = model._meta.get_field(name).related_model
        read = frozenset(columns)
        unread += [
            f"{path}__{field.name}"
            for field in model._meta.concrete_fields
            if field.name not in read and not field.primary_key and not field.is_relation
        ]
    return rows.defer(*unread)
