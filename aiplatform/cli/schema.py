"""The database's schema: created in one step where the database is empty, else brought up to date by its migrations."""

from __future__ import annotations

import contextlib
import pkgutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

Report = Callable[[str], None]


class NoMigrations:
    """A value of the setting MIGRATION_MODULES by which no app has migrations."""

    def __contains__(self, _app: str) -> bool:
        return True

    def __getitem__(self, _app: str) -> None:
        return None


class Migrate(migrate.Command):
    """Django's command, which reports each migration with the seconds it took."""

    report: Report = print
    _started = 0.0

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        if action == "apply_start":
            self._started = time.monotonic()
        elif action == "apply_success":
            self.report(f"migrated {migration} in {time.monotonic() - self._started:.1f} s")


def bring_up_to_date(report: Report = print, using: str = DEFAULT_DB_ALIAS) -> None:
    """Create or migrate the schema; do neither where the database is up to date.

    Args:
        report: takes a line for each migration.
    """
    connection = connections[using]
    tables = connection.introspection.table_names()
    if not tables:
        started = time.monotonic()
        create(using)
        report(f"created the database in {time.monotonic() - started:.1f} s")
    elif pending(using):
        command = Migrate()
        command.report = report
        call_command(command, interactive=False, verbosity=0, database=using)
    else:
        keep_what_follows_migrations(using)


def pending(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Migrations on disk that the database has not recorded, as "app.name". Reads file names, imports none."""
    applied = MigrationRecorder(connections[using]).applied_migrations()
    return [
        f"{config.label}.{module.name}"
        for config in apps.get_app_configs()
        for module in pkgutil.iter_modules([str(Path(config.path) / "migrations")])
        if module.name[0] not in "_~" and (config.label, module.name) not in applied
    ]


def create(using: str = DEFAULT_DB_ALIAS) -> None:
    """Create all tables of an empty database from the models, and record every migration as applied.

    Running the migrations gives the same schema and rows (tests/aiplatform/test_migrations.py compares them) but
    renders the state of all models after each of some 500 operations: 20 seconds of CPU time instead of one.

    All of it is one transaction. Tables without recorded migrations could neither be created nor migrated later.
    """
    if tables := connections[using].introspection.table_names():
        raise RuntimeError(f"The database already has tables ({tables[0]}, …): migrate it instead.")
    recorded = list(MigrationLoader(None).disk_migrations)
    before = settings.MIGRATION_MODULES
    settings.MIGRATION_MODULES = NoMigrations()
    try:
        with constraint_checks_disabled(connections[using]), transaction.atomic(using):
            call_command("migrate", run_syncdb=True, interactive=False, verbosity=0, database=using)
            _add_first_rows(recorded, using)
    finally:
        settings.MIGRATION_MODULES = before


def _add_first_rows(recorded: Iterable[tuple[str, str]], using: str) -> None:
    """Add the rows that migrations would have added, and record these as applied."""
    from workers.core.models import VirtualCluster

    VirtualCluster.objects.using(using).get_or_create(name="default")
    recorder = MigrationRecorder(connections[using])
    recorder.ensure_schema()
    recorder.migration_qs.bulk_create(recorder.Migration(app=app, name=name) for app, name in recorded)


@contextlib.contextmanager
def constraint_checks_disabled(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Turn off checks of foreign keys, which SQLite's schema editor requires and no transaction can do."""
    disabled = connection.vendor == "sqlite" and connection.disable_constraint_checking()
    try:
        yield
    finally:
        if disabled:
            connection.enable_constraint_checking()


def keep_what_follows_migrations(using: str = DEFAULT_DB_ALIAS) -> None:
    """Bring up to date what depends on the code and not on the schema: preset roles, triggers of the audit trail."""
    from accounts.apps import AccountsConfig

    config = apps.get_app_config("accounts")
    assert isinstance(config, AccountsConfig)
    config.keep_preset_roles(using=using)
    config.guard_the_trail(using=using)
