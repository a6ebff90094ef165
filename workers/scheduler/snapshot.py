"""What the scheduler looks at: one frozen picture of machines, limits, running and waiting work.

Plain data, no database and no clock. Times are unix seconds, sizes are shares: a card has
`FULL_CARD` shares and a CPU device as many shares per core, so one kind of sum fits both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

FULL_CARD = 8
"""Shares of one whole card, and of one CPU core."""

URGENT = 100
"""Jobs of this priority or above go before everybody else."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine. `accepts` is false while it is silent, drained or being removed."""

    id: int
    name: str
    accepts: bool = True


@dataclass(frozen=True, slots=True)
class Device:
    """One card, or all cores of a node as one device of kind `cpu`.

    `group` names cards that talk to each other faster (a switch or NVLink island).
    """

    id: int
    node: int
    kind: str = "gpu"
    model: str = ""
    group: int = 0
    capacity: int = FULL_CARD
    healthy: bool = True


@dataclass(frozen=True, slots=True)
class Cluster:
    """Limits of a virtual cluster; None means no limit."""

    id: int
    name: str
    gpu_quota: int | None = None
    user_gpus: int | None = None
    user_jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for on each of its nodes.

    `gpus` cards with `shares` of each; or, with no cards, `cpu_shares` of the node's cores.
    """

    nodes: int = 1
    gpus: int = 0
    shares: int = FULL_CARD
    cpu_shares: int = FULL_CARD
    model: str = ""

    @property
    def kind(self) -> str:
        """Kind of device this request is placed on."""
        return "gpu" if self.gpus else "cpu"

    @property
    def gpu_shares(self) -> int:
        """Card shares over all nodes; what quotas count."""
        return self.nodes * self.gpus * self.shares


@dataclass(frozen=True, slots=True)
class Running:
    """A job that holds devices now. `ends_at` is its estimated end, None if nobody knows."""

    job: int
    owner: int
    cluster: int
    held: tuple[tuple[int, int], ...]
    """Pairs of device id and shares."""
    ends_at: float | None = None
    gpu_shares: int = 0
    preemptible: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that wants to start. `runtime` is its limit in seconds, None if it has none."""

    job: int
    owner: int
    cluster: int
    request: Request
    queued_at: float
    priority: int = 0
    runtime: float | None = None
    preemptible: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything one pass of the scheduler may know."""

    nodes: tuple[Node, ...] = ()
    devices: tuple[Device, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    running: tuple[Running, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    usage: Mapping[int, float] = field(default_factory=dict)
    """Decayed card-hours by owner."""
    cluster_usage: Mapping[int, float] = field(default_factory=dict)
    """Decayed card-hours by cluster."""
    typical_runtime: float = 4 * 3600.0
    """Seconds to assume for work without a limit, for estimates only."""
