"""Print the one-time link that makes the first administrator."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.services import links
from aiplatform import env


class Command(BaseCommand):
    help = "Print a link, valid for 24 hours and one use, to create the first administrator."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--quiet", action="store_true", help="Print the path only, or nothing when not needed.")
        parser.add_argument("--base-url", default="", help="Address that users enter, e.g. https://ai.example.org")

    def handle(self, *args: Any, base_url: str, quiet: bool, **options: Any) -> None:
        path = links.issue_first_admin_link()
        if quiet:
            self.stdout.write(path or "")
            return
        if path is None:
            raise CommandError("This platform already has an administrator. Ask for an account.")
        base = base_url or env.BASE_URL or f"http://{env.HOST}:{env.PORT}"
        self.stdout.write(base.rstrip("/") + path)
