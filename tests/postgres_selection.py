"""Choose the tests of the mark `postgres` that the short gate runs on PostgreSQL: those whose SQL no other one sends.

    AIP_SQL_SHAPES=shapes.jsonl python3 manage.py test postgres --long   # record: a line for each test
    python3 -m tests.postgres_selection shapes.jsonl                     # write tests/postgres_long.txt

A *shape* is a statement without its values. Only shapes count in which the databases differ: locks, JSON, patterns and
collation, conflicts, windows, groups, dates, casts, system tables, constraints and other errors. Tests are chosen until
each shape is sent by two of them. Tests that commit (locks, isolation between connections), tests of claims and tests
of migrations are always chosen. The file names the tests that are left to `--long`, functions without parameters where
all are left; a test that it does not name runs in both forms.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests import cpu_time

LIST = Path(__file__).with_name("postgres_long.txt")
FILE = "AIP_SQL_SHAPES"
ALWAYS = re.compile("migration|claim|at_once")
#: Chosen tests that send a shape, where there are as many.
TIMES = 2
#: CPU seconds of a test apart from its own statements.
MIN_S = 0.05
SHORT = "AIP_TEST_POSTGRES_SHORT"
#: Words of statements in which SQLite and PostgreSQL differ.
DIFFERENT = re.compile(
    r"FOR (UPDATE|NO KEY UPDATE|SHARE)|SKIP LOCKED|NOWAIT|\bpg_|::|->|#>|@>|<@|\?\||&&|LIKE|UPPER\(|LOWER\(|COLLATE|~"
    r"|ON CONFLICT|DISTINCT ON|OVER \(|GROUP BY|DATE_TRUNC|EXTRACT|AT TIME ZONE|INTERVAL|ARRAY|NULLS (FIRST|LAST)"
    r"|JSON|CAST|RETURNING|REGEXP|SET LOCAL|LOCK |ALTER |CREATE |TRIGGER|PARTITION|STRING_AGG|CONCAT|GREATEST|LEAST"
)
VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+(\.\d+)?\b|%s(::\w+)?")
LIST_OF_VALUES = re.compile(r"\((?:\s*\?\s*,?)+\)(?:\s*,\s*\((?:\s*\?\s*,?)+\))*")
SAVEPOINT = re.compile(r'"s[0-9a-f_x]+"')
#: Every insertion returns its key; that alone is no difference.
USUAL = re.compile(r'RETURNING "\w+"\."id"$')


def shape(sql: str) -> str:
    """Return a statement without its values, or "" where both databases read it alike."""
    text = LIST_OF_VALUES.sub("(?)", VALUE.sub("?", SAVEPOINT.sub("s", sql))).strip()
    return text if DIFFERENT.search(USUAL.sub("", text)) else ""


class Recorder:
    """Records the shapes that each test sends, also those that fail."""

    def __init__(self, path: str) -> None:
        self.path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        from django.db import connection

        shapes: set[str] = set()

        def record(execute: Callable, sql: Any, params: Any, many: bool, context: Any) -> Any:
            try:
                return execute(sql, params, many, context)
            except Exception as error:
                shapes.add(f"{type(error).__name__} {shape(str(sql)) or str(sql)[:200]}")
                raise
            finally:
                shapes.add(shape(str(sql)))

        before = cpu_time.cpu_s()
        with connection.execute_wrapper(record):
            result = yield
        spent_s = cpu_time.cpu_s() - before
        mark = item.get_closest_marker("django_db")
        commits = bool(mark and mark.kwargs.get("transaction")) or "transactional_db" in item.fixturenames
        digests = sorted(hashlib.md5(one.encode()).hexdigest()[:10] for one in shapes - {""})
        with open(self.path, "a") as file:
            row = {"name": item.nodeid, "cpu_s": round(spent_s, 3), "commits": commits, "shapes": digests}
            file.write(json.dumps(row) + "\n")
        return result


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get(FILE):
        config.pluginmanager.register(Recorder(path), "sql-shapes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the long form runs, where the gate asks for the short form on PostgreSQL."""
    if SHORT not in os.environ:
        return
    rest = left_out()
    late = {item for item in items if not rest.isdisjoint((item.nodeid, _function(item.nodeid)))}
    config.hook.pytest_deselected(items=[item for item in items if item in late])
    items[:] = [item for item in items if item not in late]


def _function(name: str) -> str:
    """Return the name of a test without its parameters."""
    return name.partition("[")[0]


def choose(rows: list[dict[str, Any]]) -> set[str]:
    """Return the names of the tests to run: those always run, then those that send most of what is still missing."""
    chosen = {row["name"]: row for row in rows if row["commits"] or ALWAYS.search(row["name"])}
    senders = Counter(one for row in rows for one in row["shapes"])
    missing = Counter({one: min(TIMES, count) for one, count in senders.items()})
    for row in chosen.values():
        missing.subtract(row["shapes"])
    rest = {row["name"]: row for row in rows if row["name"] not in chosen}
    while missing := +missing:
        # Of tests that send equally much, the quickest.
        best = max(
            rest.values(), key=lambda row: (len(missing.keys() & row["shapes"]) / (MIN_S + row["cpu_s"]), row["name"])
        )
        chosen[best["name"]] = rest.pop(best["name"])
        missing.subtract(best["shapes"])
    return set(chosen)


def left_out() -> set[str]:
    """Return the tests that only the long form runs on PostgreSQL."""
    return {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}


def main() -> None:
    """Write the list."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    chosen = choose(rows)
    rest = {row["name"] for row in rows} - chosen
    in_part = {_function(name) for name in chosen}
    names = sorted({name if _function(name) in in_part else _function(name) for name in rest})
    head = "# Written by `python3 -m tests.postgres_selection`, see there."
    LIST.write_text("".join(f"{line}\n" for line in [head, *names]))
    print(f"{len(chosen)} tests run on PostgreSQL in both forms, {len(rest)} in the long form only")


if __name__ == "__main__":
    main()
