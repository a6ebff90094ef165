"""`manage.py ports`: the origin of jobs' ports, a web server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from aiplatform import checks, env
from workers.access.proxy import admissions
from workers.access.proxy.origin import Origin

AGAIN_S = 2.0
TIDY_S = 600.0


class Command(BaseCommand):
    help = "Forward authorized browsers to ports of jobs, on a separate origin."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        logging.getLogger("aiohttp.server").addFilter(_is_ours)
        runner = Origin().runner()
        await runner.setup()
        tidying = asyncio.create_task(_tidy())
        try:
            while not await self._listens(runner):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), AGAIN_S)
                    return
            await stopped.wait()
        finally:
            tidying.cancel()
            await runner.cleanup()

    async def _listens(self, runner: web.AppRunner) -> bool:
        """Whether the port could be taken; who had it before may still be ending."""
        try:
            await web.TCPSite(runner, env.HOST, settings.PORTS_PORT, backlog=1024).start()
        except OSError as exc:
            self.stderr.write(f"Port {settings.PORTS_PORT} of {env.HOST}: {exc.strerror}. Set AIP_PORTS_PORT.")
            return False
        return True


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a line is about us, not about an invalid HTTP request: anyone may send those, and gets a response."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def _tidy() -> None:
    """Delete admissions that are over, every ten minutes. Nodes may not touch them, so no Celery task does it."""
    while True:
        with contextlib.suppress(DatabaseError):
            await sync_to_async(admissions.sweep)()
        await asyncio.sleep(TIDY_S)
