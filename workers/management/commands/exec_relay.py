"""`manage.py exec_relay`: the roads between this machine's jobs and the others. One per node."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand

from aiplatform import checks, env
from workers.exec import egress, relay


class Command(BaseCommand):
    help = "Carry terminals, ports and files of jobs to other machines, and jobs' connections to the world outside."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(serve())


async def serve() -> None:
    """Serve until SIGTERM. A platform of one machine has no others that could ask."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    servers = [await egress.begin(egress.Egress(env.EGRESS_ALLOWED))]
    if env.NODE_ADDRESS:
        servers.append(await relay.listen(env.NODE_ADDRESS, env.EXEC_PORT))
    await stopped.wait()
    for server in servers:
        server.close()
    egress.end()
