"""`manage.py agent`: looks after this node's jobs. One per node; a second one on the same node stands by."""

from __future__ import annotations

import fcntl
import signal
import sys
import threading
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from aiplatform import checks
from workers.core import agent_wakeup
from workers.execution.agent.loop import REFUSED_CODE, Agent
from workers.resources.monitoring.monitor import Monitor


class Command(BaseCommand):
    help = "Register this node, start assigned jobs, report events and respond to requests."
    requires_system_checks = (checks.SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()

        def stop(*_signal: object) -> None:
            stopped.set()
            agent_wakeup.notify(settings.NODE)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        settings.RUN_DIR.mkdir(parents=True, exist_ok=True)
        with (settings.RUN_DIR / f"agent-{settings.NODE}.lock").open("w") as lock:
            while not stopped.is_set():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.5)
            Monitor().start(stopped.is_set)
            agent = Agent()
            agent.pulse.start(stopped.is_set)
            agent.run(stopped.is_set)
        if agent.refusal:
            self.stderr.write(agent.refusal)
            sys.exit(REFUSED_CODE)
