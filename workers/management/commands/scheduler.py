"""`manage.py scheduler`: decides what starts where. Several may run, one acts."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from aiplatform import checks
from workers.core import scheduler_wakeup
from workers.resources.monitoring.monitor import Monitor
from workers.scheduling.loop import Scheduler


class Command(BaseCommand):
    help = "Plan the queue: assign devices, explain waiting jobs, check silent nodes and time limits."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()

        def stop(*_signal: object) -> None:
            stopped.set()
            scheduler_wakeup.wake()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        watching = Monitor().start(stopped.is_set)
        Scheduler().run(stopped.is_set)
        watching.join(2)
