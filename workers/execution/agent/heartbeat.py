"""Heartbeat of a node, on a thread and a database connection of its own: a slow pass makes no node look dead."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connection

from workers.core.clock import now
from workers.core.models import Node

log = logging.getLogger(__name__)

BEAT_S = 5.0
STUCK_S = 120.0
"""An agent whose looks stand still for so long does not do its work: it falls silent, and others see that."""


class Heartbeat:
    """`beat` is one heartbeat and what tests call; `start` repeats it."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.clock = name, clock
        self._looked = clock()

    def looked(self) -> None:
        """Note that the agent began another pass over its jobs."""
        self._looked = self.clock()

    def beat(self) -> bool:
        """Write the heartbeat unless the agent is stuck; return whether it was written."""
        if self.clock() - self._looked > STUCK_S:
            log.error("node=%s the agent stands still for %.0f s", self.name, self.clock() - self._looked)
            return False
        rows = Node.objects.filter(name=self.name).exclude(state=Node.State.REMOVED).exclude(boot_id="")
        return bool(rows.update(heartbeat_at=now()))

    def start(self, stopped: Callable[[], bool]) -> threading.Thread:
        """Beat until `stopped`."""
        thread = threading.Thread(target=self._run, args=[stopped], name="pulse", daemon=True)
        thread.start()
        return thread

    def _run(self, stopped: Callable[[], bool]) -> None:
        while not stopped():
            try:
                self.beat()
            except (OperationalError, InterfaceError) as exc:
                log.info("node=%s no heartbeat: %s", self.name, exc)
                connection.close()
            except Exception:
                log.exception("node=%s no heartbeat, the next one follows", self.name)
            time.sleep(BEAT_S)
        connection.close()
