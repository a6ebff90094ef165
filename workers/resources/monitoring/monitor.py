"""Platform monitor. Every scheduler and agent runs this thread; a lease elects the one that acts.

It needs neither broker nor scheduler, so that it can tell that they are away. A database that is away costs
looks; the first look afterwards says how long nobody watched. While a full disk lets no alarm be recorded it is logged
and sent at once, and recorded as soon as there is room.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from accounts.services import outbox
from aiplatform.lib import disk
from aiplatform.lib.claims import new_holder
from workers.core import leases
from workers.core.clock import now
from workers.core.models import Lease
from workers.resources.monitoring import alarms, history
from workers.resources.monitoring.snapshot import MonitoringSnapshot
from workers.resources.monitoring.snapshot_reader import SnapshotReader

log = logging.getLogger(__name__)

LEASE = "overseer"  # as in rows of before: two versions must not both act during an upgrade
TICK_S = 5.0
LOOK_S = 15.0
SAMPLE_S = 10.0
FORGET_S = 3600.0


class Monitor:
    """`tick` is what tests call; `start` repeats it in a thread of its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.holder = new_holder()
        self.clock = clock
        self.snapshot_reader = SnapshotReader(clock)
        self.acting = False
        self._full = False  # a full disk let nothing be recorded since the last look
        self._posting: threading.Thread | None = None
        self._looked = self._sampled = self._forgot = float("-inf")

    def start(self, stopped: Callable[[], bool]) -> threading.Thread:
        """Watch until `stopped`."""
        thread = threading.Thread(target=self._run, args=[stopped], name="monitor", daemon=True)
        thread.start()
        return thread

    def tick(self) -> bool:
        """Look, sample and forget what is due; False where another one acts."""
        before = Lease.objects.filter(name=LEASE).exclude(holder="").first()
        moment, started_at = now(), time.monotonic()
        if leases.acquire(LEASE, self.holder) is None:
            self.acting = False
            return False
        database_s = time.monotonic() - started_at
        if not self.acting:
            self.acting = True
            alarms.ensure_rules()
        due = self.clock()
        if due - self._sampled >= SAMPLE_S:
            self._sampled = due
            history.sample(moment)
        if due - self._looked >= LOOK_S:
            self._looked = due
            self._update(moment, before.renewed_at if before else moment, database_s)
        if due - self._forgot >= FORGET_S:
            self._forgot = due
            alarms.forget(moment)
        return True

    def _update(self, moment: datetime, seen_last: datetime, database_s: float) -> None:
        unwatched = max(0.0, (moment - seen_last).total_seconds())
        snapshot = self.snapshot_reader.read(moment, database_s=database_s, unwatched_s=unwatched)
        if self._full:
            snapshot = _with_full_disk(snapshot, settings.NODE)
        alarms.update(snapshot, moment)
        self._full = False
        if snapshot.broker_s is None and not (self._posting and self._posting.is_alive()):
            self._posting = threading.Thread(target=_post, name="outbox", daemon=True)
            self._posting.start()

    def disk_full(self) -> None:
        """Tell of a full disk that keeps every alarm from being recorded, once until there is room."""
        if self._full:
            return
        self._full = True
        self._looked = float("-inf")
        log.error(
            "node=%s the disk is full, nothing can be saved: free space below %s", settings.NODE, settings.DATA_ROOT
        )
        if self.acting:
            try:
                alarms.tell_unrecorded("disk_full", subject=settings.NODE, value=0.0, moment=now())
            except (OperationalError, InterfaceError) as exc:
                log.warning("monitor: nobody told of the full disk, database away: %s", exc)

    def _run(self, stopped: Callable[[], bool]) -> None:
        while not stopped():
            started_at = time.monotonic()
            try:
                self.tick()
            except (OperationalError, InterfaceError) as exc:
                if disk.is_full(exc):
                    self.disk_full()
                else:
                    log.warning("monitor: database away, trying again: %s", exc)
                close_old_connections()
            except Exception:
                log.exception("monitor: a look failed, the next one follows")
            while not stopped() and time.monotonic() - started_at < TICK_S:
                time.sleep(0.5)
        try:
            if self.acting:
                leases.release(LEASE, self.holder)
        except (OperationalError, InterfaceError) as exc:
            log.info("monitor: lease not given back: %s", exc)
        finally:
            connection.close()


def _with_full_disk(snapshot: MonitoringSnapshot, node: str) -> MonitoringSnapshot:
    """The snapshot as it was while nothing could be recorded."""
    machines = [
        dataclasses.replace(machine, disk_free_percent=0.0) if machine.name == node else machine
        for machine in snapshot.machines
    ]
    return dataclasses.replace(snapshot, machines=tuple(machines))


def _post() -> None:
    """Send waiting messages without the broker: the alarm that it is away must not wait for its return."""
    try:
        outbox.sweep()
    except (OperationalError, InterfaceError) as exc:
        log.info("monitor: nothing sent, database away: %s", exc)
    except Exception:
        log.exception("monitor: sending failed, the next look tries again")
    finally:
        connection.close()
