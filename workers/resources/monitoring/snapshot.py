"""Monitoring snapshot: the platform at one moment, as the alarm rules read it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from aiplatform.lib.wording import Message

NOTHING = Message()


@dataclass(frozen=True, slots=True)
class Machine:
    """A node. Figures are None where nothing fresh is known; percentages are 0 to 100."""

    name: str
    silent_s: float = 0.0
    cpu_percent: float | None = None
    memory_percent: float | None = None
    disk_free_percent: float | None = None
    inodes_free_percent: float | None = None
    clock_off_s: float | None = None
    version: str = ""
    unkillable: int = 0  # processes of jobs that even KILL did not end


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU or NPU. `health` is a value of `Device.Health`; `held` is whether a job holds it."""

    node: str
    index: int
    kind: str = "gpu"
    health: str = "ok"
    note: Message = NOTHING  # why it is not OK
    held: bool = False
    util: float | None = None
    memory_percent: float | None = None
    temperature_c: float | None = None

    @property
    def name(self) -> str:
        return f"{self.node} {self.kind}{self.index}"


@dataclass(frozen=True, slots=True)
class Queue:
    """Who waits in one cluster, and for how long the first of them has."""

    cluster: str
    waiting: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class Share:
    """How much of something with a limit is used: "alice", 93.0."""

    what: str
    percent: float
    user: int | None = None  # who should know
    of: str = "storage"  # or a person's "home"
    page: str = ""  # where that person sees what uses it


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often a job that starts again after failures did so in the last hour."""

    job: int
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class MonitoringSnapshot:
    """Everything the rules may look at. What could not be found out is None."""

    version: str = ""
    machines: tuple[Machine, ...] = ()
    cards: tuple[Card, ...] = ()
    queues: tuple[Queue, ...] = ()
    shares: tuple[Share, ...] = ()
    restarts: tuple[Restarts, ...] = ()
    scheduler_silent_s: float | None = None
    broker_s: float | None = None
    """Seconds a round trip to the broker took; None: it did not answer."""
    database_s: float = 0.0
    """Seconds a small transaction took."""
    unwatched_s: float = 0.0
    """How long nobody looked before this look: the database, or every watcher, was away."""
    certificate_days: float | None = None
    ended: int = 0
    failed: int = 0
    """Jobs that ended in the last hour, and how many of them failed."""
    undelivered: int = 0
    """Messages given up in the last hour."""
