"""Fit: which devices a request gets, and whether it could ever fit. Pure.

Best fit: the node, and on it the device group, that is left with the least free afterwards, so that
large holes stay large. Nodes of a gang are distinct machines and are found all together or not at all.
What a kind of device allows (counts, crossing groups) stands in `device_kinds`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from workers.core.count_classes import CLASSES, JOB
from workers.core.device_kinds import DeviceKind, rules
from workers.core.machine_needs import NOTHING, fits
from workers.planning.planner.limits import unowned
from workers.planning.planner.snapshot import FULL_CARD, Cluster, Device, Node, Request, ResourceGroup, cards_of

Place = tuple[int, tuple[tuple[int, int], ...]]
"""A node id and the (device id, shares) taken on it."""


@dataclass(frozen=True, slots=True)
class Never:
    """Why a request can never run. `field` names the form field to change, `args` fill the sentence."""

    code: str
    field: str
    args: dict[str, int | float | str]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A request as the machines see it; one object for all jobs that ask alike.

    `kind` and `counted` are those of the request. `nodes` are (node id, device indices, whether they all are in one
    group) of the devices it could be placed on.
    """

    request: Request
    kind: str
    counted: tuple[str, int]
    rules: DeviceKind
    wanted: int
    count: int
    nodes: tuple[tuple[int, tuple[int, ...], bool], ...]

    @property
    def requested(self) -> int:
        """Devices over all nodes."""
        return self.request.nodes * self.count


class Space:
    """Free shares of all devices that may take new work, and where a request would go.

    Amounts are lists by dense index. `free` is what is free now. `spare` bounds what work that outlives
    a reservation may take of a device, so that the reserved job starts in time; `long_free` is what such work
    may take now. While nothing is reserved the three are one list.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        devices: Iterable[Device],
        closed_to: Callable[[str], frozenset[int]] = lambda kind: frozenset(),
    ) -> None:
        up = {node.id: node for node in nodes if node.accepts}
        self.nodes = list(up.values())
        self.tiers = {node.id: node.tier for node in self.nodes}
        self.devices = [d for d in devices if d.healthy and d.node in up]
        self.index = {d.id: i for i, d in enumerate(self.devices)}
        self.free = [d.capacity for d in self.devices]
        self.groups = [d.group for d in self.devices]
        self.spare = self.long_free = self.free
        self._rootless = frozenset(node.id for node in self.nodes if not node.root_inside)
        self._closed_to = closed_to
        self._by_id: dict[tuple[int, str | None], Shape] = {}
        self._shapes: dict[tuple[Request, frozenset[int]], Shape] = {}
        self._asked: list[Request] = []  # keeps the objects alive that `_by_id` names

    def shape(self, request: Request, kind: str | None) -> Shape:
        """The shape of `request` on the nodes for a job of `kind`; None ignores resource groups.

        Equal questions give the same object.
        """
        shape = self._by_id.get((id(request), kind))
        if shape is None:
            closed = frozenset() if kind is None else self._closed_to(kind)
            shape = self._shapes.get((request, closed)) or self._shapes.setdefault(
                (request, closed), self._new_shape(request, closed)
            )
            self._by_id[id(request), kind] = shape
            self._asked.append(request)
        return shape

    def _new_shape(self, request: Request, closed: frozenset[int]) -> Shape:
        kind = rules(request.kind)
        closed |= self._rootless if request.root_inside else frozenset()
        alone = request.node if request.nodes == 1 else 0
        may_share = request.shares >= FULL_CARD or kind.shareable
        by_node: dict[int, list[int]] = {}
        if not request.gpus or (kind.allows(request.gpus, request.nodes) and may_share):
            for i, device in enumerate(self.devices):
                if device.node in closed or not request.takes(self.tiers[device.node]):
                    continue
                if alone in (0, device.node) and matches(request, device):
                    by_node.setdefault(device.node, []).append(i)
        wanted, count = wanted_shares(request), request.gpus or 1
        nodes = tuple(
            (node, tuple(members), len({self.groups[i] for i in members}) == 1)
            for node, members in sorted(by_node.items())
            if len(members) >= count
        )
        return Shape(request, request.kind, request.counted, kind, wanted, count, nodes)

    def occupy(self, held: Iterable[tuple[int, int]], *, outlives: bool = True) -> None:
        """Occupy (device id, shares). Devices that are missing or closed to new work are skipped."""
        for device, shares in held:
            i = self.index.get(device)
            if i is not None:
                self.free[i] -= shares
                if self.spare is not self.free:
                    if outlives:
                        self.spare[i] -= shares
                    self.long_free[i] = min(self.free[i], self.spare[i])

    def release_into(self, held: Iterable[tuple[int, int]], free: list[int]) -> None:
        """Add (device id, shares) to `free`, a copy of the free amounts."""
        for device, shares in held:
            i = self.index.get(device)
            if i is not None:
                free[i] += shares

    def bound(self, later: Sequence[int], shape: Shape) -> None:
        """Reserve: of the devices that `shape` matches, leave long work no more than `later`."""
        self.reserve(later, (i for _, members, _ in shape.nodes for i in members))

    def reserve(self, later: Sequence[int], indices: Iterable[int]) -> None:
        """Reserve on these devices: leave long work no more than `later`."""
        if self.spare is self.free:
            self.spare, self.long_free = list(self.free), list(self.free)
            for i in indices:
                self.spare[i] = later[i]
                self.long_free[i] = min(self.free[i], later[i])
            return
        for i in indices:
            self.spare[i] = min(self.spare[i], later[i])
            self.long_free[i] = min(self.long_free[i], self.spare[i])

    def free_cards(self, shape: Shape, free: Sequence[int]) -> int:
        """How many devices could each give the shares that is wanted of one."""
        return sum(free[i] >= shape.wanted for _, members, _ in shape.nodes for i in members)

    def largest_share(self, shape: Shape, free: Sequence[int]) -> int:
        """Return the most shares that are free on one of the devices that `shape` could use."""
        return max((free[i] for _, members, _ in shape.nodes for i in members), default=0)

    def best_node(self, shape: Shape, free: Sequence[int]) -> int:
        """The most such devices on any one node."""
        wanted = shape.wanted
        return max((sum(free[i] >= wanted for i in members) for _, members, _ in shape.nodes), default=0)

    def find(self, shape: Shape, free: Sequence[int]) -> tuple[Place, ...] | None:
        """Places for every node of the request within `free`, tightest first, or None."""
        wanted, count = shape.wanted, shape.count
        options: list[tuple[bool, int, int, int, list[int]]] = []
        for node, members, one_group in shape.nodes:
            if len(members) == 1:
                left = free[members[0]]
                if left >= wanted:
                    options.append((False, 1 + left * 1024, 1, node, [*members]))
                continue
            usable = [i for i in members if free[i] >= wanted]
            if len(usable) < count:
                continue
            if one_group:
                left = len(usable) + (min([free[i] for i in usable]) * 1024 if count == 1 else 0)
                options.append((False, left, len(usable), node, usable))
                continue
            choice = self._group(usable, shape, free, takes_all=len(usable) == len(members))
            if choice is not None:
                options.append((choice[0], choice[1], len(usable), node, choice[2]))
        if len(options) < shape.request.nodes:
            return None
        home = shape.request.node
        if home and all(node != home for *_, node, _ in options):
            return None
        order = (lambda option: (option[3] != home, option)) if home else None
        chosen = [min(options)] if shape.request.nodes == 1 else sorted(options, key=order)[: shape.request.nodes]
        places = []
        for *_, node, group in chosen:
            group.sort(key=lambda i: (free[i], i))
            places.append((node, tuple((self.devices[i].id, wanted) for i in group[:count])))
        return tuple(places)

    def bins(self, shape: Shape) -> list[tuple[int, tuple[int, ...]]]:
        """(node id, device indices) of which any `count` that have room suffice, where the kind lets them."""
        bins: list[tuple[int, tuple[int, ...]]] = []
        for node, members, one_group in shape.nodes:
            if one_group or shape.rules.crosses_groups:
                bins.append((node, members))
                continue
            groups = self._by_group(members)
            bins += [(node, tuple(group)) for group in groups if len(group) >= shape.count]
            if len(members) == shape.count and all(len(group) < shape.count for group in groups):
                bins.append((node, members))
        return bins

    def _group(
        self, usable: list[int], shape: Shape, free: Sequence[int], *, takes_all: bool
    ) -> tuple[bool, int, list[int]] | None:
        """Where on one node the devices go: (crosses groups, tightness, indices to choose from).

        A single device goes to the fullest card, several go to the group with the least to spare. Where the
        kind keeps jobs within a group, what is larger than one may only take a node where `takes_all`.
        """
        count = shape.count
        best: tuple[bool, int, list[int]] | None = None
        for members in self._by_group(usable):
            if len(members) >= count:
                left = len(members) + (min([free[i] for i in members]) * 1024 if count == 1 else 0)
                if best is None or left < best[1]:
                    best = (False, left, members)
        if best is None and (shape.rules.crosses_groups or (takes_all and len(usable) == count)):
            return True, len(usable), usable
        return best

    def _by_group(self, members: Iterable[int]) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        for i in members:
            groups.setdefault(self.groups[i], []).append(i)
        return list(groups.values())


def wanted_shares(request: Request) -> int:
    """Shares taken of each device."""
    return request.shares if request.gpus else request.cpu_shares


def matches(request: Request, device: Device) -> bool:
    """Whether `request` could be placed on this device when it is empty."""
    if device.kind != request.kind or request.model not in ("", device.model):
        return False
    if request.needs is not NOTHING and not fits(
        request.needs, driver=device.driver, arch=device.arch, cards=bool(request.gpus)
    ):
        return False
    if not request.card_memory_mib or not request.gpus or not device.memory_mib:
        return True
    return device.memory_mib * request.shares >= request.card_memory_mib * device.capacity


def why_never(
    request: Request,
    nodes: Sequence[Node],
    devices: Sequence[Device],
    cluster: Cluster,
    *,
    kind: str = "",
    counts_as: str = JOB.name,
    groups: Sequence[ResourceGroup] = (),
    clusters: Sequence[Cluster] = (),
    preemptible: bool = False,
) -> tuple[Never, ...]:
    """All reasons why `request` of a job of `kind` could not run even on an empty platform; empty if it could.

    Silent nodes and sick cards count: they may come back. Limits of the cluster count as they stand, and so do
    resource groups that are closed to this kind at every hour.

    Args:
        kind: the job's kind, compared with those of resource groups.
        counts_as: what the job counts as in limits, a name of `workers.core.count_classes`.
        clusters: all of them; what they are guaranteed is nothing for who would not give way.
        preemptible: whether the job would.
    """
    request = request.smallest
    up = [Node(n.id, n.name, root_inside=n.root_inside, tier=n.tier) for n in nodes]
    all_up = up, [replace(d, healthy=True) for d in devices]
    against_rules = _against_rules(request)
    reasons = [*against_rules, *_over_limits(request, cluster, counts_as)]
    if not preemptible and cluster.quota(request.counted[0]).guaranteed is None:
        reasons += _over_unowned(request, unowned(*all_up, clusters))
    closed: frozenset[int] = frozenset().union(*(g.nodes for g in groups if not g.windows and kind not in g.kinds))
    space = Space(*all_up, lambda _: closed)
    if against_rules:  # no card is looked for then; what the machines have is told all the same
        return (*reasons, *_beyond_machines(request, space, len(nodes)))
    if space.find(space.shape(request, kind), space.free) is not None:
        return tuple(reasons)
    if closed and space.find(space.shape(request, None), space.free) is not None:
        names = ", ".join(g.name for g in groups if not g.windows and kind not in g.kinds)
        return (*reasons, Never("kept_for_others", "nodes", {"groups": names}))
    if request.root_inside and space.find(space.shape(replace(request, root_inside=False), kind), space.free):
        return (*reasons, Never("no_root_inside", "root_inside", {}))
    beyond = _beyond_machines(request, space, len(nodes))
    return (*reasons, *(beyond or [_too_many_nodes(request, len(nodes))]))


def _beyond_machines(request: Request, space: Space, nodes: int) -> list[Never]:
    """Reasons for numbers that are larger than any node, or than the number of nodes."""
    reasons = _beyond_a_machine(request, space)
    if request.nodes > nodes:
        reasons.append(_too_many_nodes(request, nodes))
    return reasons


def _beyond_a_machine(request: Request, space: Space) -> list[Never]:
    """The numbers that are larger than any machine; first what its image needs and none has."""
    if request.needs is not NOTHING and not any(matches(request, device) for device in space.devices):
        bare = replace(request, needs=NOTHING)
        return _beyond_a_machine(bare, space) or [_image_fits_nowhere(request, bare, space)]
    return _too_large(request, space)


def _image_fits_nowhere(request: Request, bare: Request, space: Space) -> Never:
    """What the image needs, and what the machines that could hold the job have."""
    able = [device for device in space.devices if matches(bare, device)]
    needs = request.needs
    if needs.arch and all(device.arch not in ("", needs.arch) for device in able):
        return Never("image_processor", "image", {"needed": needs.arch, "there": able[0].arch})
    newest = max(device.driver for device in able)
    return Never("image_driver", "image", {"cuda": needs.cuda_words, "needed": needs.driver, "newest": newest})


def _too_large(request: Request, space: Space) -> list[Never]:
    if request.gpus == 0:
        best = max((d.capacity for d in space.devices if matches(request, d)), default=0)
        if best >= request.cpu_shares:
            return []
        requested = cards_of(request.cpu_shares)
        return [Never("too_many_cpus", "cpus", {"asked": requested, "best": best // FULL_CARD})]
    available = _most_on_a_node(request, space)
    if available == 0:
        if request.card_memory_mib and _most_on_a_node(replace(request, card_memory_mib=0), space):
            return [Never("too_little_memory", "share", {"asked_mib": request.card_memory_mib})]
        if request.model:
            return [Never("no_such_model", "device_model", {"model": request.model})]
        return [Never("no_such_card", "gpus_per_node", {"model": request.model})]
    if available < request.gpus:
        return [Never("too_many_on_a_node", "gpus_per_node", {"asked": request.gpus, "best": available})]
    return []


def _too_many_nodes(request: Request, nodes: int) -> Never:
    return Never("too_many_nodes", "nodes", {"asked": request.nodes, "nodes": nodes})


def _against_rules(request: Request) -> list[Never]:
    """What the kind of device does not allow on any node."""
    if not request.gpus:
        return []
    kind, reasons = rules(request.device_kind), []
    if request.shares < FULL_CARD and not kind.shareable:
        reasons.append(Never("not_shareable", "share", {"kind": kind.label}))
    if kind.counts and request.gpus not in kind.counts:
        allowed = ", ".join(map(str, kind.counts))
        facts: dict[str, int | float | str] = {"asked": request.gpus, "kind": kind.label, "allowed": allowed}
        reasons.append(Never("count_not_allowed", "gpus_per_node", facts))
    elif not kind.allows(request.gpus, request.nodes):
        facts = {"asked": request.gpus, "kind": kind.label, "count": kind.distributed_count or 0}
        reasons.append(Never("distributed_count", "gpus_per_node", facts))
    return reasons


def _over_limits(request: Request, cluster: Cluster, counts_as: str) -> list[Never]:
    """Limits of the cluster that are smaller than the request."""
    kind_of_device, shares = request.counted
    quota = cluster.quota(kind_of_device)
    cluster_limit = None if quota.borrows else quota.guaranteed
    codes, blamed = ("over_cluster_quota", "over_user_cards"), "gpus_per_node"
    if kind_of_device == "cpu":
        codes, blamed = ("over_cluster_cores", "over_user_cores"), "cpus"
    reasons = []
    for limit, code in zip((cluster_limit, quota.per_user), codes, strict=True):
        if limit is not None and shares > limit * FULL_CARD:
            facts: dict[str, int | float | str] = {"asked": cards_of(shares), "limit": limit, "cluster": cluster.name}
            reasons.append(Never(code, blamed, facts))
    if cluster.per_user.get(counts_as) == 0:
        reasons.append(Never(CLASSES[counts_as].none_allowed, "cluster", {"cluster": cluster.name}))
    return reasons


def _over_unowned(request: Request, left: Mapping[str, int]) -> list[Never]:
    """Whether the request exceeds what clusters leave to work that takes nothing of their guarantees."""
    kind, shares = request.counted
    if shares <= left.get(kind, shares):
        return []
    code = "over_unowned_cores" if kind == "cpu" else "over_unowned_cards"
    return [Never(code, "preemptible", {"asked": cards_of(shares), "limit": left[kind] // FULL_CARD})]


def _most_on_a_node(request: Request, space: Space) -> int:
    """The most matching devices on one node."""
    counts: dict[int, int] = {}
    for device in space.devices:
        if matches(request, device):
            counts[device.node] = counts.get(device.node, 0) + 1
    return max(counts.values(), default=0)
