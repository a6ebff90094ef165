"""Queries whose SQL is built once: building a small query takes Django several times as long as running it.

For the queries that every page runs. Parameters are whole numbers (ids); all else in the query is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

_FIRST_MARKER = 2_083_019_471  # represents the first parameter while the SQL is built; fits in 32 bits
_MAX_PARAMETERS = 9


class _Statement(NamedTuple):
    sql: str
    params: tuple[Any, ...]
    slots: tuple[tuple[int, int], ...]  # (place among `params`, number of the parameter)
    converters: tuple[tuple[int, Any, Any], ...]  # (column, functions that convert its value, expression)


class PreparedQuery:
    """A `values_list` query, called with its parameters.

        _names = PreparedQuery(lambda user: Membership.objects.filter(user=user).values_list("cluster__name"))
        _names(7)  # → [("default",)]

    Args:
        build: takes one number per parameter and returns the query set. It is called once per kind of database.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]]) -> None:
        self._build = build
        self._statements: dict[str, _Statement] = {}

    def __call__(self, *values: int) -> list[tuple[Any, ...]]:
        """Return the rows."""
        statement = self._statements.get(connection.vendor)
        if statement is None:
            statement = self._statements[connection.vendor] = self._prepare(len(values))
        params = list(statement.params)
        for index, number in statement.slots:
            params[index] = values[number]
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return [_converted(row, statement) for row in rows] if statement.converters else rows

    def _prepare(self, count: int) -> _Statement:
        markers = [_FIRST_MARKER + number for number in range(min(count, _MAX_PARAMETERS))]
        compiler = self._build(*markers).query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        numbers = {marker: number for number, marker in enumerate(markers)}
        slots = tuple(
            (index, numbers[value]) for index, value in enumerate(params) if type(value) is int and value in numbers
        )
        if {number for _place, number in slots} != set(range(count)):
            raise TypeError("Each parameter of a prepared query is a whole number that its SQL compares with.")
        selected = [expression for expression, _sql, _alias in compiler.select]
        converters = tuple((column, *functions) for column, functions in compiler.get_converters(selected).items())
        return _Statement(sql, tuple(params), slots, converters)


def _converted(row: tuple[Any, ...], statement: _Statement) -> tuple[Any, ...]:
    values = list(row)
    for column, functions, expression in statement.converters:
        for function in functions:
            values[column] = function(values[column], expression, connection)
    return tuple(values)
