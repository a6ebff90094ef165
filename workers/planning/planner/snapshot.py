"""Planner snapshot: machines, limits, running and waiting work.

Plain data, no database and no clock. Times are unix seconds, sizes are shares: a card has
`FULL_CARD` shares and a CPU device as many shares per core, so one kind of sum fits both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from workers.core.count_classes import JOB
from workers.core.machine_needs import NOTHING, Needs

FULL_CARD = 8
"""Shares of one whole card, and of one CPU core."""

URGENT = 100
"""Jobs of this priority or above go before everybody else."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine. `accepts` is false while it is silent, drained or being removed.

    `spare_mib` is host memory that card memory of evicted work may take, 0 where nothing is evicted.
    `root_inside`: jobs can be root inside there. `tier` is how it keeps jobs apart (workers.supervisor.sandbox).
    """

    id: int
    name: str
    accepts: bool = True
    spare_mib: int = 0
    root_inside: bool = False
    tier: int = 0


@dataclass(frozen=True, slots=True)
class Device:
    """One card, or all cores of a node as one device of kind `cpu`.

    `kind` is a name of `device_kinds.KINDS`. `group` names cards that talk to each other faster (a switch
    or NVLink island). `memory_mib` is the card's own memory, 0 where nobody knows. `driver` (its major number) and
    `arch` are its machine's, 0 and "" where nobody knows.
    """

    id: int
    node: int
    kind: str = "gpu"
    model: str = ""
    group: int = 0
    capacity: int = FULL_CARD
    healthy: bool = True
    memory_mib: int = 0
    driver: int = 0
    arch: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """What a cluster may use of one kind of device, in cards, or in cores that jobs without cards ask for.

    Up to `guaranteed` are the cluster's own. Where `borrows`, it may also use what others leave idle; borrowed work
    gives way when they want their own back. None means no limit, and nothing of its own: where others have a number,
    preemptible work borrows whatever is idle, the rest takes only what is guaranteed to nobody.
    """

    guaranteed: int | None = None
    borrows: bool = False
    per_user: int | None = None


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Limits of a virtual cluster. `quotas` by device kind; a kind without one has no limit.

    `per_user` is the most jobs that a person may run, by what they count as (`workers.core.count_classes`); a class
    without a number has no limit.
    """

    id: int
    name: str
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    per_user: Mapping[str, int] = field(default_factory=dict)

    def quota(self, kind: str) -> Quota:
        """The quota for a device kind."""
        return self.quotas.get(kind, NO_QUOTA)


@dataclass(frozen=True, slots=True)
class Window:
    """A daily span of local time, in minutes since midnight; one that ends before it begins ends the next day."""

    begins: int
    ends: int
    weekdays: frozenset[int] = frozenset(range(7))
    """Days on which it begins; Monday is 0."""


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Nodes kept for some kinds of jobs: within a window only those start there, outside anybody does."""

    id: int
    name: str
    nodes: frozenset[int]
    kinds: frozenset[str]
    windows: tuple[Window, ...] = ()
    """Empty: always."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for on each of its nodes.

    `gpus` cards of `device_kind` with `shares` of each; or, with no cards, `cpu_shares` of the node's cores.
    `card_memory_mib` is the least memory that those shares of a card must amount to. `node` is the machine it
    belongs to, 0 where any will do; of several one is that. `root_inside`: only machines that offer it will do.
    `tiers` are the least and the most isolation tier of its machines; None takes any.
    `needs` is what its image asks of each machine. `least`: where not that many nodes are free, so many will do;
    0 takes all or none.
    """

    nodes: int = 1
    gpus: int = 0
    shares: int = FULL_CARD
    cpu_shares: int = FULL_CARD
    model: str = ""
    device_kind: str = "gpu"
    card_memory_mib: int = 0
    node: int = 0
    root_inside: bool = False
    needs: Needs = NOTHING
    tiers: tuple[int, int] | None = None
    least: int = 0

    @property
    def smallest(self) -> "Request":
        """The same on the fewest nodes that will do."""
        return replace(self, nodes=self.least, least=0) if self.least else self

    @property
    def larger(self) -> "Iterator[Request]":
        """The same on more nodes than that, most first."""
        for nodes in range(self.nodes, self.least, -1) if self.least else ():
            yield replace(self, nodes=nodes, least=0)

    def takes(self, tier: int) -> bool:
        """Whether a machine of this isolation tier will do."""
        return self.tiers is None or self.tiers[0] <= tier <= self.tiers[1]

    @property
    def kind(self) -> str:
        """Kind of device this request is placed on."""
        return self.device_kind if self.gpus else "cpu"

    @property
    def card_shares(self) -> int:
        """Card shares over all nodes."""
        return self.nodes * self.gpus * self.shares

    @property
    def counted(self) -> tuple[str, int]:
        """(kind of device, shares over all nodes) that quotas count: its cards, or its cores where it has none."""
        if self.gpus:
            return self.device_kind, self.nodes * self.gpus * self.shares
        return "cpu", self.nodes * self.cpu_shares


@dataclass(frozen=True, slots=True)
class Running:
    """A job that holds devices now. `ends_at` is its estimated end, None if it is unknown.

    `runtime` is its limit in seconds. `preempting` is true from the moment it was asked to make room until
    its devices are free; `for_job` is then the job it makes room for. `askable` is false while it cannot be
    asked, because it only begins or is ending already. `queued_at` is its place in the queue while it waited.
    `times_preempted` counts how often it made room before.
    `evictable`: it is not willing to leave, but its card memory may be moved to the host. Work that was evicted
    holds nothing; `away` is then what it goes back to, since `evicted_since`, and limits count it all the time.
    `kind` is only compared with those of resource groups; `counts_as` is a name of `workers.core.count_classes`.
    `idle`: nobody uses it, and its owner was told that it gives its cards to whoever waits.
    """

    job: int
    owner: int
    cluster: int
    held: tuple[tuple[int, int], ...]
    """Pairs of device id and shares."""
    ends_at: float | None = None
    card_shares: int = 0
    preemptible: bool = False
    kind: str = ""
    device_kind: str = "gpu"
    priority: int = 0
    started_at: float = 0.0
    preempting: bool = False
    for_job: int | None = None
    askable: bool = True
    queued_at: float = 0.0
    runtime: float | None = None
    times_preempted: int = 0
    evictable: bool = False
    away: tuple[tuple[int, int], ...] = ()
    evicted_since: float = 0.0
    counts_as: str = JOB.name
    idle: bool = False

    @property
    def counted(self) -> tuple[str, int]:
        """(kind of device, shares) that quotas count: its cards, or its cores where it has none."""
        if self.card_shares:
            return self.device_kind, self.card_shares
        return "cpu", sum(shares for _, shares in self.held)


def cards_of(shares: int) -> int | float:
    """Return shares as GPUs or cores, exact to an eighth: 8 → 1, 4 → 0.5."""
    cards, part = divmod(shares, FULL_CARD)
    return shares / FULL_CARD if part else cards


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that wants to start. `runtime` is its limit in seconds, None if it has none.

    `promised`: running work was asked to make room for it; it comes first when the cards are free.
    `kind` and `counts_as` are as for `Running`. `expected` is the run time in seconds that its kind expects, for
    example the time budget of a training; only estimates of start times use it. `answers_requests`: requests fail
    while it waits, so it comes first among jobs of the same priority.
    """

    job: int
    owner: int
    cluster: int
    request: Request
    queued_at: float
    priority: int = 0
    runtime: float | None = None
    preemptible: bool = False
    kind: str = ""
    promised: bool = False
    counts_as: str = JOB.name
    expected: float | None = None
    answers_requests: bool = False

    def estimated_runtime(self, typical: float) -> float:
        """Return its run time for estimates, in seconds: as expected, else its limit, else `typical`."""
        candidates = [seconds for seconds in (self.expected, self.runtime) if seconds is not None]
        return min(candidates, default=typical)


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
    groups: tuple[ResourceGroup, ...] = ()
    utc_offset_s: float = 0.0
    """Seconds by which the site's clocks are ahead of UTC, for windows."""
