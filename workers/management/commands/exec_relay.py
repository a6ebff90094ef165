"""`manage.py exec_relay`: the roads between this machine's jobs and the others. One per node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import Any

from django.core.management.base import BaseCommand

from aiplatform import checks, env
from workers.execution.exec import egress, peers, relay
from workers.execution.exec.closed_addresses import ClosedAddresses

log = logging.getLogger(__name__)

AGAIN_S = 5.0
TAKEN = (
    "port=%s of address=%s cannot be opened (%s): terminals, ports and files of jobs on this node are not "
    "available from other nodes. If a second platform runs here, set AIP_EXEC_PORT to a free port, the same on "
    "all nodes."
)


class Command(BaseCommand):
    help = "Forward terminals, ports and files of jobs to other nodes, and outgoing connections of jobs."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(serve())


async def serve() -> None:
    """Serve until SIGTERM. A platform of one machine has no others that could ask."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    egress.take_files()
    servers: list[asyncio.Server | egress.Door] = []
    listening = asyncio.create_task(_listen(servers))
    opening = asyncio.create_task(_serve_egress(servers))
    between = peers.Peers()
    keeping = asyncio.create_task(between.maintain())
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([keeping, waiting], return_when=asyncio.FIRST_COMPLETED)
    keeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keeping  # where it failed, this process ends with that and is started again
    listening.cancel()
    opening.cancel()
    between.end()
    for server in servers:
        server.close()


def way_out() -> egress.Egress:
    """The egress proxy as it is set up for this machine."""
    return egress.Egress(env.EGRESS_ALLOWED, closed=ClosedAddresses(env.EGRESS_REFUSED).hold)


async def _serve_egress(servers: list[asyncio.Server | egress.Door]) -> None:
    """Serve jobs' outbound connections; a failure is logged and repeated while the rest continues."""
    logged = ""
    while True:
        try:
            servers.append(await egress.start(way_out()))
        except OSError as exc:
            if str(exc) != logged:
                log.error("egress proxy not started, jobs have no outgoing connections: %s", exc)
            logged = str(exc)
            await asyncio.sleep(AGAIN_S)
        else:
            return


async def _listen(servers: list[asyncio.Server | egress.Door]) -> None:
    """Serve other nodes; a port in use is logged and tried again while the rest continues."""
    is_logged = False
    while env.NODE_ADDRESS:
        try:
            servers.append(await relay.listen(env.NODE_ADDRESS, env.EXEC_PORT))
        except OSError as exc:
            if not is_logged:
                log.error(TAKEN, env.EXEC_PORT, env.NODE_ADDRESS, exc.strerror or exc)
            is_logged = True
            await asyncio.sleep(AGAIN_S)
        else:
            return
