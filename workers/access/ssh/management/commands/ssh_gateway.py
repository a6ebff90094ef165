"""`manage.py ssh_gateway`: lets people into their jobs by SSH. One runs, where the web server runs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from aiplatform import checks, env
from workers.access.ssh.gateway import server


class Command(BaseCommand):
    help = "Listen on AIP_SSH_PORT and connect users to their jobs."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        if not env.SSH_PORT:
            raise CommandError("AIP_SSH_PORT is 0, so the gateway is disabled.")
        logging.getLogger("asyncssh").setLevel(logging.WARNING)
        asyncio.run(server.serve(env.HOST, env.SSH_PORT))
