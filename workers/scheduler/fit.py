"""Where a request goes. Pure.

Best fit: the node, and on it the device group, that is left with the least free afterwards, so that
large holes stay large. Nodes of a gang are distinct machines and are found all together or not at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workers.scheduler.snapshot import FULL_CARD, Cluster, Device, Node, Request

Place = tuple[int, tuple[tuple[int, int], ...]]
"""A node id and the (device id, shares) taken on it."""


@dataclass(frozen=True, slots=True)
class Never:
    """Why a request can never run. `field` names the form field to change, `args` fill the sentence."""

    code: str
    field: str
    args: dict[str, int | str]


class Space:
    """Free shares of all devices that may take new work, and where a request would go.

    Amounts are lists by dense index. `free` is what is free now. `spare` bounds what work that outlives
    a reservation may take of a device, so that the reserved job starts in time (None: no bound).
    """

    def __init__(self, nodes: Iterable[Node], devices: Iterable[Device]) -> None:
        up = {node.id: node for node in nodes if node.accepts}
        self.devices = [d for d in devices if d.healthy and d.node in up]
        self.index = {d.id: i for i, d in enumerate(self.devices)}
        self.free = [d.capacity for d in self.devices]
        self.groups = [d.group for d in self.devices]
        self.spare: list[int] | None = None
        self._by_node: dict[tuple[str, str], list[tuple[int, list[int]]]] = {}

    def take(self, held: Iterable[tuple[int, int]], *, outlives: bool = True) -> None:
        """Occupy (device id, shares). Devices that are gone or closed to new work are passed over."""
        for device, shares in held:
            i = self.index.get(device)
            if i is not None:
                self.free[i] -= shares
                if self.spare is not None and outlives:
                    self.spare[i] -= shares

    def give(self, held: Iterable[tuple[int, int]], free: list[int]) -> None:
        """Add (device id, shares) to `free`, a copy of the free amounts."""
        for device, shares in held:
            i = self.index.get(device)
            if i is not None:
                free[i] += shares

    def long_free(self) -> list[int]:
        """What work without an end before the reservation may take."""
        if self.spare is None:
            return self.free
        return [min(b, a) for a, b in zip(self.free, self.spare, strict=True)]

    def matching(self, request: Request) -> list[int]:
        """Indices of the devices that `request` could be placed on."""
        return [i for _, members in self._nodes(request) for i in members]

    def free_cards(self, request: Request, free: Sequence[int]) -> int:
        """How many devices could each give the shares that `request` wants of one."""
        wanted = wanted_shares(request)
        return sum(free[i] >= wanted for i in self.matching(request))

    def best_node(self, request: Request, free: Sequence[int]) -> int:
        """The most such devices on any one node."""
        wanted = wanted_shares(request)
        counts = (sum(free[i] >= wanted for i in members) for _, members in self._nodes(request))
        return max(counts, default=0)

    def find(self, request: Request, free: Sequence[int]) -> tuple[Place, ...] | None:
        """Places for every node of `request` within `free`, tightest first, or None."""
        wanted, count = wanted_shares(request), request.gpus or 1
        options: list[tuple[bool, int, int, int, list[int]]] = []
        for node, members in self._nodes(request):
            usable = [i for i in members if free[i] >= wanted]
            if len(usable) >= count:
                split, left, chosen = self._group(usable, count, free)
                options.append((split, left, len(usable), node, chosen))
        if len(options) < request.nodes:
            return None
        options.sort()
        places = []
        for *_, node, group in options[: request.nodes]:
            group.sort(key=lambda i: (free[i], i))
            places.append((node, tuple((self.devices[i].id, wanted) for i in group[:count])))
        return tuple(places)

    def _group(self, usable: list[int], count: int, free: Sequence[int]) -> tuple[bool, int, list[int]]:
        """Where on one node `count` devices go: (crosses groups, tightness, indices to choose from).

        A single device goes to the fullest card, several go to the group with the least to spare.
        """
        groups: dict[int, list[int]] = {}
        for i in usable:
            groups.setdefault(self.groups[i], []).append(i)
        best: tuple[bool, int, list[int]] | None = None
        for members in groups.values():
            if len(members) >= count:
                left = len(members) + (min([free[i] for i in members]) * 1024 if count == 1 else 0)
                if best is None or left < best[1]:
                    best = (False, left, members)
        return best or (True, len(usable), usable)

    def _nodes(self, request: Request) -> list[tuple[int, list[int]]]:
        """(node id, device indices) that match the kind and model asked for."""
        key = (request.kind, request.model)
        if key not in self._by_node:
            found: dict[int, list[int]] = {}
            for i, device in enumerate(self.devices):
                if device.kind == request.kind and request.model in ("", device.model):
                    found.setdefault(device.node, []).append(i)
            self._by_node[key] = sorted(found.items())
        return self._by_node[key]


def wanted_shares(request: Request) -> int:
    """Shares taken of each device."""
    return request.shares if request.gpus else request.cpu_shares


def can_ever_fit(request: Request, nodes: Sequence[Node], devices: Sequence[Device], cluster: Cluster) -> Never | None:
    """Why `request` could not run even on an empty platform, or None if it could.

    Silent nodes and sick cards count: they may come back. Limits of the cluster count as they stand.
    """
    cards = request.nodes * request.gpus
    shares = request.card_shares
    quota = cluster.quota(request.kind)
    for limit, code in ((quota.guaranteed, "over_cluster_quota"), (quota.per_user, "over_user_cards")):
        if limit is not None and shares > limit * FULL_CARD:
            return Never(code, "gpus_per_node", {"asked": cards, "limit": limit, "cluster": cluster.name})
    if cluster.user_jobs == 0:
        return Never("no_jobs_allowed", "cluster", {"cluster": cluster.name})
    healthy = [Device(d.id, d.node, d.kind, d.model, d.group, d.capacity) for d in devices]
    space = Space([Node(n.id, n.name) for n in nodes], healthy)
    if space.find(request, space.free) is not None:
        return None
    if request.gpus == 0:
        best = max((d.capacity for d in space.devices if d.kind == "cpu"), default=0)
        if best < request.cpu_shares:
            asked = -(-request.cpu_shares // FULL_CARD)
            return Never("too_many_cpus", "cpus", {"asked": asked, "best": best // FULL_CARD})
        return Never("too_many_nodes", "nodes", {"asked": request.nodes, "nodes": len(nodes)})
    best = space.best_node(request, space.free)
    if best == 0:
        return Never("no_such_card", "gpus_per_node", {"model": request.model})
    if best < request.gpus:
        return Never("too_many_on_a_node", "gpus_per_node", {"asked": request.gpus, "best": best})
    return Never("too_many_nodes", "nodes", {"asked": request.nodes, "nodes": len(nodes)})
