"""Database triggers of the audit trail, on SQLite and PostgreSQL: rows are only added."""

from __future__ import annotations

from django.db import connections

from accounts.models import AuditEntry

SAYS = "the audit trail is only ever added to"


def guard(*, using: str = "default") -> None:
    """Make triggers that refuse UPDATE and DELETE on the trail, unless they are there already.

    The owner of the database can drop them; users who only write through the platform cannot.
    """
    connection = connections[using]
    table = AuditEntry._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for act in ("UPDATE", "DELETE"):
                cursor.execute(
                    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{act.lower()} BEFORE {act} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{SAYS}'); END"
                )
        elif connection.vendor == "postgresql":
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN RAISE EXCEPTION '{SAYS}'; END $$"
            )
            cursor.execute(f"DROP TRIGGER IF EXISTS {table}_no_change ON {table}")
            cursor.execute(
                f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {table}_refuse()"
            )
