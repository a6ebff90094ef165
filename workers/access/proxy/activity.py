"""When a person last did something with a port of a job: a sign of life for who judges idle jobs.

Counted are pages that are opened, requests that change something, and what a browser says over a socket. What an open
tab asks for by itself (lists, states, figures) is not.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from datetime import datetime

from django.utils.timezone import now

from workers.access.proxy.models import PortUse
from workers.core.models import Job

EVERY_S = 10.0
MIN_BYTES = 3  # bytes: programs that keep a socket alive say less
EDITOR_HEAD, EDITOR_REGULAR = 13, 1  # of messages of VS Code, see `Spoken`
BURST, BURST_S = 5, 10.0


class Spoken:
    """What a browser says over one WebSocket, and whether a person does so.

    An editor of VS Code's kind says something by itself every few seconds: it acknowledges, keeps its connection alive,
    answers what its server asks. Its messages have a head of 13 bytes, the first one their kind; who types or
    clicks sends many that carry something within a few seconds.

    Args:
        query: of the address of the socket, by which that protocol is known.
    """

    def __init__(self, query: Mapping[str, str]) -> None:
        self._carrying: deque[float] | None = deque(maxlen=BURST) if "reconnectionToken" in query else None

    def is_from_user(self, data: str | bytes) -> bool:
        """Whether this message shows that a user is active."""
        if self._carrying is None:
            return len(data) >= MIN_BYTES
        if not isinstance(data, bytes) or len(data) <= EDITOR_HEAD or data[0] != EDITOR_REGULAR:
            return False
        moment = time.monotonic()
        self._carrying.append(moment)
        return len(self._carrying) == BURST and moment - self._carrying[0] <= BURST_S


def is_persons(method: str, mode: str) -> bool:
    """Whether a request is a person's doing. `mode`: what the browser says in Sec-Fetch-Mode."""
    return method not in {"GET", "HEAD", "OPTIONS"} or mode == "navigate"


class Noting:
    """Writes down signs of life, for each job at most once in ten seconds."""

    def __init__(self) -> None:
        self._noted: dict[int, float] = {}

    def is_due(self, job: int) -> bool:
        """Whether the next activity of this job is to be written; called once for each."""
        moment = time.monotonic()
        if moment - self._noted.get(job, float("-inf")) < EVERY_S:
            return False
        self._noted[job] = moment
        return True


def note(job: int) -> None:
    """Write down that a person did something now."""
    if not PortUse.objects.filter(job=job).update(acted_at=now()) and Job.objects.filter(pk=job).exists():
        PortUse.objects.update_or_create(job_id=job, defaults={"acted_at": now()})


def last_request(job: Job) -> datetime | None:
    """When a person last did something with a port of this job; None for never."""
    return PortUse.objects.filter(job=job).values_list("acted_at", flat=True).first()
