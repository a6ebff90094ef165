"""`manage.py prepare`: what `up` has to do in the database before it starts anything, as one process."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from accounts.services import links
from aiplatform import checks


class Command(BaseCommand):
    help = "Bring the database up to date; print the path that makes the first administrator, or nothing."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write(links.first_admin() or "")
