"""`manage.py prepare`: what `up` does in the database before it starts anything else."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from accounts.services import links
from aiplatform import checks
from aiplatform.cli import schema


class Command(BaseCommand):
    help = "Bring the database up to date; print the path that makes the first administrator, or nothing."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        schema.bring_up_to_date(self._report)
        self.stdout.write(links.first_admin() or "")

    def _report(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
