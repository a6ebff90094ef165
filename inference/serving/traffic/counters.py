"""Counts the requests of services: in this process at once, in the database every two seconds.

A process that is killed takes along what it counted within the last two seconds.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import DatabaseError, IntegrityError, close_old_connections, transaction
from django.db.models import F
from django.utils.timezone import now

from inference.serving.models import Service, ServiceUsage
from inference.serving.traffic import histogram

log = logging.getLogger(__name__)
FLUSH_S = 2.0
PERIOD = timedelta(hours=1)
RETENTION = timedelta(days=90)
OVERLOADED = (408, 429)  # of a server: it was too slow for the requests


@dataclass(frozen=True)
class Slot:
    """The caller and the server of a count: ids of rows, 0 for none."""

    service: int
    version: int
    trial: int = 0
    candidate: bool = False
    user: int = 0
    key: int = 0


@dataclass
class Tally:
    """What was counted and is not in the database yet."""

    requests: int = 0
    failed: int = 0
    refused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0
    latencies: dict[str, int] = field(default_factory=dict)
    compared: int = 0
    agreement: float = 0.0


class Counter:
    """What this process counts. Used by the event loop, emptied by a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[tuple[Slot, int], Tally] = {}
        self._flushing: asyncio.Task[None] | None = None

    def count_response(self, slot: Slot, status: int, seconds: float, bytes_in: int = 0, bytes_out: int = 0) -> None:
        """Count a request that ended.

        Args:
            status: the status that the caller got.
        """
        with self._lock:
            tally = self._tally(slot)
            tally.requests += 1
            overloaded = status in OVERLOADED
            tally.failed += status >= 500 or overloaded
            tally.refused += 400 <= status < 500 and not overloaded
            tally.bytes_in += bytes_in
            tally.bytes_out += bytes_out
            if status < 400:  # a refusal at once would make a model look fast
                tally.seconds += seconds
                name = str(histogram.bucket(seconds))
                tally.latencies[name] = tally.latencies.get(name, 0) + 1

    def count_comparison(self, slot: Slot, agreement: float) -> None:
        """Count a copy whose answer agreed, 0..1, with the one that was given."""
        with self._lock:
            tally = self._tally(slot)
            tally.compared += 1
            tally.agreement += agreement

    def _tally(self, slot: Slot) -> Tally:
        moment = datetime.now(UTC).timestamp()
        begins = int(moment - moment % PERIOD.total_seconds())
        return self._tallies.setdefault((slot, begins), Tally())

    def flush_soon(self) -> None:
        """Write in a moment, from within the event loop; once for all that is counted until then."""
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.get_running_loop().create_task(self._flush_later())

    async def _flush_later(self) -> None:
        await asyncio.sleep(FLUSH_S)
        await sync_to_async(self.flush)()

    def flush(self) -> None:
        """Add what was counted to the rows; what cannot be written now is kept for the next time."""
        with self._lock:
            taken, self._tallies = self._tallies, {}
        if not taken:
            return
        close_old_connections()
        with suppress(DatabaseError):  # sent again with the next counts
            Service.objects.filter(pk__in={slot.service for slot, _begins in taken}).update(asked_at=now())
        for (slot, begins), tally in taken.items():
            try:
                _add(slot, begins, tally)
            except IntegrityError:
                log.info("service=%s was deleted, its last requests are not counted", slot.service)
            except DatabaseError:
                log.warning("service=%s its requests are counted later", slot.service, exc_info=True)
                self._restore(slot, begins, tally)

    def _restore(self, slot: Slot, begins: int, tally: Tally) -> None:
        with self._lock:
            current = self._tallies.setdefault((slot, begins), Tally())
            for name, value in _sums(tally).items():
                setattr(current, name, getattr(current, name) + value)
            current.latencies = histogram.together([current.latencies, tally.latencies])


SUMS = ("requests", "failed", "refused", "bytes_in", "bytes_out", "seconds", "compared", "agreement")


def _sums(tally: Tally) -> Mapping[str, float]:
    return {name: getattr(tally, name) for name in SUMS}


@transaction.atomic
def _add(slot: Slot, begins: int, tally: Tally) -> None:
    name = f"{slot.service}:{slot.version}:{slot.trial}:{int(slot.candidate)}:{slot.user}:{slot.key}:{begins}"
    owned = {
        "service_id": slot.service,
        "version_id": slot.version or None,
        "trial_id": slot.trial or None,
        "candidate": slot.candidate,
        "user_id": slot.user or None,
        "key_id": slot.key or None,
        "begins_at": datetime.fromtimestamp(begins, UTC),
    }
    ServiceUsage.objects.get_or_create(slot=name, defaults=owned)
    row = ServiceUsage.objects.select_for_update().get(slot=name)
    changes = {name: F(name) + value for name, value in _sums(tally).items()}
    latencies = histogram.together([row.latencies, tally.latencies])
    ServiceUsage.objects.filter(pk=row.pk).update(**changes, latencies=latencies)


def forget_old() -> None:
    """Remove counts that are older than 90 days."""
    ServiceUsage.objects.filter(begins_at__lt=datetime.now(UTC) - RETENTION).delete()


COUNTER = Counter()
