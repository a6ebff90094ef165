"""Databases as earlier versions left them: an empty one, migrated one by one, with a row in every table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from django.db import connection, connections, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

OURS = ("accounts", "annotation", "datasets", "inference", "training", "workers")
Target = tuple[str, str]
#: Columns a row leaves empty, as it has the other one.
EITHER_OR = {"trainingjob": {"start_file": "", "code": None}}


@contextlib.contextmanager
def empty(folder: Path) -> Iterator[None]:
    """A database with no table, of the kind the tests run on; `connection` is this one while it lasts."""
    usual = connections["default"]
    if usual.vendor == "sqlite":
        usual_name, name = None, str(folder / "bare.sqlite3")
    else:
        usual_name, name = usual.settings_dict["NAME"], f"aip_bare_{uuid4().hex[:8]}"
        with usual._nodb_cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
    bare = usual.copy()
    bare.settings_dict = {**usual.settings_dict, "NAME": name}
    connections["default"] = bare
    try:
        yield
    finally:
        bare.close()
        connections["default"] = usual
        if usual_name is not None:
            with usual._nodb_cursor() as cursor:
                cursor.execute(f'DROP DATABASE "{name}"')


def squashed() -> dict[str, tuple[str, list[str]]]:
    """By app, the migration that replaces others, and the names of those in their order."""
    loader = MigrationLoader(None)
    return {
        key[0]: (key[1], [name for _, name in m.replaces]) for key, m in loader.disk_migrations.items() if m.replaces
    }


def last_single() -> list[Target]:
    """The newest migrations of our apps that the squashed ones stand for."""
    newest = {app: replaced[-1] for app, (_, replaced) in squashed().items()}
    return [(app, newest.get(app, "0001_initial")) for app in OURS]


def by_single_ones(targets: list[Target]) -> Any:
    """Migrate to `targets` as a version without squashed migrations did; return the models of that time."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    with mock.patch.object(executor, "check_replacements"):
        executor.migrate(targets)
    assert not set(MigrationRecorder(connection).applied_migrations()) & {(a, n) for a, (n, _) in squashed().items()}
    return executor.loader.project_state(targets).apps


def by_squashed_ones() -> Any:
    """Migrate up to the squashed migrations, and no further; return the models of that time."""
    names = squashed()
    executor = MigrationExecutor(connection)
    targets = [(app, names[app][0] if app in names else "0001_initial") for app in OURS]
    executor.migrate(targets)
    return executor.loader.project_state(targets).apps


def rows() -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables but the list of migrations; times become "a time"."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(set(connection.introspection.table_names()) - {"django_migrations"}):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            columns = [column[0] for column in cursor.description]
            found[table] = sorted(
                ({c: _steady(c, v) for c, v in zip(columns, row, strict=True)} for row in cursor.fetchall()), key=repr
            )
    return found


def _steady(column: str, value: Any) -> Any:
    return "a time" if value is not None and column.endswith("_at") else value


def schema() -> dict[str, Any]:
    """What the database keeps: columns, constraints and indexes by table, in no order, as the database spells them."""
    if connection.vendor == "sqlite":
        return _schema_of_sqlite()
    queries = {
        "columns": (
            "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default,"
            " is_identity FROM information_schema.columns WHERE table_schema = 'public'"
        ),
        "constraints": (
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
        ),
        "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    }
    with connection.cursor() as cursor:
        found = {}
        for what, query in queries.items():
            cursor.execute(query)
            found[what] = {tuple(row) for row in cursor.fetchall()}
    return found


def _schema_of_sqlite() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        kept = cursor.fetchall()
    return {
        "tables": {name: _clauses(sql) for what, name, _, sql in kept if what == "table"},
        "others": {row for row in kept if row[0] != "table"},
    }


def _clauses(sql: str) -> list[str]:
    """Columns and constraints of a `CREATE TABLE`, sorted."""
    clauses, depth = [""], 0
    for letter in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            clauses.append("")
        else:
            clauses[-1] += letter
    return sorted(clause.strip() for clause in clauses)


def fill(apps: Any) -> int:
    """Put one row into every table of our apps, filled as far as the columns allow; how many."""
    waiting = [model for app in OURS for model in apps.get_app_config(app).get_models()]
    made: dict[Any, Any] = {}
    for model in waiting:
        if (row := model.objects.order_by("pk").first()) is not None:
            made[model] = row
    while missing := [model for model in waiting if model not in made]:
        ready = [m for m in missing if all(f.related_model in made for f in _keys(m) if not f.null)]
        assert ready, missing
        for model in ready:
            values = {f.name: made.get(f.related_model) for f in _keys(model)}
            values |= {f.name: _value(f) for f in _plain(model)} | EITHER_OR.get(model._meta.model_name, {})
            made[model] = model.objects.create(**values)
    for model, row in made.items():
        for field in model._meta.many_to_many:
            if field.remote_field.through._meta.auto_created and field.related_model in made:
                getattr(row, field.name).add(made[field.related_model])
    return len(made)


def _keys(model: Any) -> list[Any]:
    return [f for f in model._meta.concrete_fields if f.is_relation]


def _plain(model: Any) -> list[Any]:
    return [f for f in model._meta.concrete_fields if not f.is_relation and not isinstance(f, models.AutoField)]


def _value(field: Any) -> Any:
    if field.choices:
        return field.choices[0][0] or field.choices[1][0]
    match field:
        case models.BooleanField():
            return True
        case models.DateTimeField():
            return timezone.now()
        case models.TimeField():
            return timezone.now().time()
        case models.DurationField():
            return timedelta(hours=1)
        case models.JSONField():
            return [[1, "b"]] if field.default is list else {"a": 1}
        case models.UUIDField():
            return uuid4()
        case models.FloatField():
            return 0.5
        case models.IntegerField():
            return 1
    return f"{field.name} é"[: field.max_length]
