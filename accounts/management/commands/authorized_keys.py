"""Print the SSH keys of a person: for an SSH server's AuthorizedKeysCommand."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.services import ssh_keys


class Command(BaseCommand):
    help = "Print the public keys of an active user, one per line; nothing for other users."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        for line in ssh_keys.authorized(username):
            self.stdout.write(line)
