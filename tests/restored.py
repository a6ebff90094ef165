"""The rows of a database as they were when the tests began, put back after a test that commits.

Django empties every table and then makes permissions and kinds of content anew, which costs more than most tests.
Here only tables that hold rows are emptied, and what migrations had put into them comes back, ids and all.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

Rows = tuple[str, list[tuple[Any, ...]]]  # how to put them in, and they


class Beginning:
    """What lay in the tables, and how to bring that back."""

    def __init__(self) -> None:
        self.tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
        self.rows: dict[str, Rows] = {}
        with connection.cursor() as cursor:
            for table in self._filled(cursor):
                cursor.execute(f"SELECT * FROM {_quoted(table)}")
                columns = ", ".join(_quoted(column[0]) for column in cursor.description)
                places = ", ".join(["%s"] * len(cursor.description))
                into = f"INSERT INTO {_quoted(table)} ({columns}) VALUES ({places})"
                self.rows[table] = into, list(cursor.fetchall())
            self.numbers = _numbers(cursor)

    def restore(self, *, ids: bool) -> None:
        """Empty the tables, and put back what lay in them.

        Args:
            ids: give the next rows the same ids again; not where tests share a data folder, as paths have ids in them.
        """
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":  # no order of tables keeps all foreign keys at every step
                cursor.execute("SET LOCAL session_replication_role = replica")
            for table in self._filled(cursor):
                cursor.execute(f"DELETE FROM {_quoted(table)}")
            for into, rows in self.rows.values():
                cursor.executemany(into, rows)
            if ids and connection.vendor == "sqlite":  # else the ids of a test depend on which tests ran before it
                cursor.execute("DELETE FROM sqlite_sequence")
                cursor.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", self.numbers)

    def _filled(self, cursor: Any) -> list[str]:
        asked = " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {_quoted(table)})" for table in self.tables
        )
        cursor.execute(asked)
        return [row[0] for row in cursor.fetchall()]


def _numbers(cursor: Any) -> list[tuple[Any, ...]]:
    """Return the last id of each table on SQLite."""
    if connection.vendor != "sqlite":
        return []
    cursor.execute("SELECT name, seq FROM sqlite_sequence")
    return list(cursor.fetchall())


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
