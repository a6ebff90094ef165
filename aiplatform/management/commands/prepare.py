"""`manage.py prepare`: what `up` does in the database before it starts anything else."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from accounts.services import links
from aiplatform import checks
from aiplatform.cli import schema, space
from aiplatform.lib import disk


class Command(BaseCommand):
    help = "Migrate the database; print the path to create the first administrator, or nothing."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            schema.bring_up_to_date(self._report)
            self.stdout.write(links.issue_first_admin_link() or "")
        except Exception as exc:
            if not disk.is_full(exc):
                raise
            if connection.vendor == "sqlite":
                raise CommandError(space.full_disk_text()) from exc
            raise CommandError("The disk of the database server is full. Free space there, then start again.") from exc

    def _report(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
