"""Which running jobs make room for a waiting one. Pure.

Five reasons: nobody uses the running job, whoever waits; the waiting job is urgent; it lies inside its cluster's
guarantee and others borrowed the cards; a window has opened in which the machines are kept for its kind of work; it is
its turn after a very long wait, and preemptible work that came later was let ahead of it meanwhile. Who borrows
himself takes only from his own cluster and from others who borrow. Lowest priority first, then the fewest jobs, then
the youngest; a job counts twice as much for each time that it made room. Nothing is preempted upward, before its
minimum run time, which doubles with each time, or twice at once; but a guarantee waits for neither rank nor minimum:
where no other borrowed work is enough, urgent work gives borrowed devices back, and so does work that has just begun.

Work that is not willing is evicted where its machine allows that and has the memory: urgent work may displace it so
where no willing work is enough, and what was borrowed leaves this way rather than by being ended.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from workers.planning.planner.fit import Shape, Space
from workers.planning.planner.limits import Verdict
from workers.planning.planner.policy import Policy
from workers.planning.planner.snapshot import FULL_CARD, URGENT, Running, Waiting
from workers.planning.planner.windows import Openings

Why = Literal["idle", "urgent", "guarantee", "window", "turn"]
Cost = tuple[int, int, float]
"""(highest priority among the victims, for how many they count, hours they ran): what is smaller is taken first."""

FREE_OF_COST: Cost = (-1_000_000, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Victim:
    """A running job that may be preempted, what it would release (index, shares), and why."""

    run: Running
    gives: tuple[tuple[int, int], ...]
    why: Why
    weight: int
    """For how many jobs it counts."""
    evict: bool = False
    """It goes by being evicted."""
    needs: tuple[int, int] = (0, 0)
    """Node id, and MiB of its memory that the eviction takes."""
    unwilling: bool = False
    """It may only be evicted."""
    last: bool = False
    """It is urgent or has just begun: it only goes where the others are not enough."""


class Victims:
    """All running jobs that anybody might be preempted for, looked up once per pass."""

    def __init__(
        self, running: Iterable[Running], borrowed: frozenset[int], space: Space, now: float, policy: Policy
    ) -> None:
        self._now, self._turn_s = now, policy.turn_s
        self._borrowed = borrowed
        self._gives: dict[int, tuple[tuple[int, int], ...]] = {}
        self._needs: dict[int, tuple[int, int]] = {}
        self._spare: dict[int, int] = {}
        self._eligible: list[Running] = []
        self._protected: set[int] = set()
        self.any_idle = False
        """Whether any running job holds devices that nobody uses."""
        if not policy.preempts:
            return
        self._spare = {node.id: node.spare_mib for node in space.nodes if node.spare_mib > 0}
        for run in running:
            willing = run.askable and (run.preemptible or run.idle or run.job in borrowed or run.evictable)
            protected = now - run.started_at < policy.protected_s(run.times_preempted)
            if willing and not run.preempting and (run.job in borrowed or not protected):
                gives = tuple((space.index[d], shares) for d, shares in run.held if d in space.index)
                if gives:
                    self._eligible.append(run)
                    if protected:
                        self._protected.add(run.job)
                    self._gives[run.job] = gives
                    if run.evictable and len(gives) == len(run.held):
                        self._needs[run.job] = _host_memory(gives, space)
        self.any_idle = any(run.idle for run in self._eligible)

    def __bool__(self) -> bool:
        return bool(self._eligible)

    def drop(self, jobs: Iterable[int]) -> None:
        """Leave out jobs that have been chosen."""
        gone = set(jobs)
        self._eligible = [run for run in self._eligible if run.job not in gone]
        self.any_idle = any(run.idle for run in self._eligible)

    def for_job(
        self, job: Waiting, verdict: Verdict, openings: Openings, space: Space, *, turn: bool = False
    ) -> list[Victim]:
        """Jobs that `job` may preempt, and why.

        Args:
            verdict: what limits say to `job`; one that only its own cluster's quota keeps waiting may only take
                from its own cluster.
            turn: whether it is the turn of `job`, so that what was let ahead of it gives way.
        """
        reserved_nodes = openings.kept_for(job.kind)
        if job.priority < URGENT and not verdict.owns and not reserved_nodes and not turn and not self.any_idle:
            return []
        victims = []
        for run in self._eligible:
            gives = self._gives[run.job]
            foreign = reserved_nodes and reserved_nodes & openings.closed_to(run.kind) & {
                space.devices[i].node for i, _ in gives
            }
            why = self._why(run, job, verdict, foreign=bool(foreign), turn=turn)
            if why is not None:
                needs = self._needs.get(run.job, (0, 0)) if verdict.refused is None else (0, 0)
                evict = 0 < needs[1] <= self._spare.get(needs[0], 0)
                unwilling = not run.preemptible and not run.idle and run.job not in self._borrowed
                if evict or not unwilling:
                    weight = 1 << min(run.times_preempted, 30)
                    last = run.job in self._protected or run.priority >= URGENT
                    victims.append(Victim(run, gives, why, weight, evict, needs if evict else (0, 0), unwilling, last))
        return victims

    def crowded_out(self, chosen: Iterable[Victim]) -> set[int]:
        """Jobs of `chosen` whose memory the nodes cannot hold in addition to that of the others."""
        left, jobs = dict(self._spare), set()
        for victim in chosen:
            node, mib = victim.needs
            if victim.evict and left[node] < mib:
                jobs.add(victim.run.job)
            elif victim.evict:
                left[node] -= mib
        return jobs

    def evicted(self, chosen: Iterable[Victim]) -> None:
        """Count the host memory that these take."""
        for victim in chosen:
            if victim.evict:
                self._spare[victim.needs[0]] -= victim.needs[1]

    def _why(self, run: Running, job: Waiting, verdict: Verdict, *, foreign: bool, turn: bool) -> Why | None:
        """Why `run` may be preempted; `foreign` if it is where a window reserves nodes for the kind of `job`."""
        urgent, lent, own = job.priority >= URGENT, run.job in self._borrowed, run.cluster == job.cluster
        owed = verdict.owns and lent and not own
        if run.idle and run.priority < URGENT and verdict.refused is None and (own or lent or not verdict.borrows):
            return "idle"
        if run.priority >= URGENT or run.job in self._protected:
            return "guarantee" if owed else None  # else never upward, sideways among urgent work, or early
        if verdict.refused is not None:
            return "urgent" if urgent and own and run.preemptible else None
        within_reach = own or lent or not verdict.borrows
        if urgent and (((run.preemptible or run.evictable) and within_reach) or (lent and not verdict.borrows)):
            return "urgent"
        if owed:
            return "guarantee"
        if not run.preemptible or run.priority > job.priority or (verdict.borrows and not lent):
            return None
        if foreign:
            return "window"
        if turn and job.queued_at < run.queued_at and run.started_at > job.queued_at:
            return "turn"
        return None


def choose_for(
    shape: Shape,
    room: Sequence[int],
    victims: Sequence[Victim],
    all_: Victims,
    space: Space,
    now: float,
    *,
    gap: int = 0,
) -> tuple[Victim, ...] | None:
    """`choose`, first among idle jobs, the unwilling and the `last` only where the others are not enough,
    and never more than the nodes can hold.

    What was borrowed and finds no room in its machine's memory leaves as work without eviction does.
    """
    stages = [[victim for victim in victims if victim.why == "idle"]]
    readily = [victim for victim in victims if not victim.unwilling and not victim.last]
    for wider in (readily, [victim for victim in victims if not victim.unwilling], list(victims)):
        if len(wider) > len(stages[-1]):
            stages.append(wider)
    for among in stages:
        while among:
            chosen = choose(shape, room, among, space, now, gap=gap)
            if chosen is None:
                break
            crowded = all_.crowded_out(chosen)
            if not crowded:
                return chosen
            among = [
                victim if victim.run.job not in crowded else replace(victim, evict=False, needs=(0, 0))
                for victim in among
                if victim.run.job not in crowded or not victim.unwilling
            ]
    return None


def _host_memory(gives: Iterable[tuple[int, int]], space: Space) -> tuple[int, int]:
    """(node, MiB) that these shares of cards hold at most; 0 MiB where it is unknown, or on several nodes."""
    cards = [(space.devices[i], shares) for i, shares in gives]
    if len({card.node for card, _ in cards}) != 1 or not all(card.memory_mib for card, _ in cards):
        return 0, 0
    return cards[0][0].node, sum(-(-card.memory_mib * shares // FULL_CARD) for card, shares in cards)


def choose(
    shape: Shape, room: Sequence[int], victims: Sequence[Victim], space: Space, now: float, *, gap: int = 0
) -> tuple[Victim, ...] | None:
    """The victims after which `shape` fits into `room`, or None if no set of them is enough.

    Args:
        room: shares of each device that the waiting job may count on without them.
        gap: shares that the victims hold at least, because the cluster's quota lacks them.
    """
    search = _Search(shape, list(room), victims, now)
    if not search.close(gap):
        return None
    bins = space.bins(shape)
    nodes_left = shape.request.nodes
    used: set[int] = set()
    while nodes_left:
        best: tuple[Cost, int, list[Victim]] | None = None
        for node, members in bins:
            if node in used:
                continue
            option = search.cheapest(members)
            if option is not None and (best is None or (option[0], node) < best[:2]):
                best = (option[0], node, option[1])
                if option[0] == FREE_OF_COST:
                    break
        if best is None:
            return None
        used.add(best[1])
        search.accept(best[2])
        nodes_left -= 1
    return search.without_the_needless(space)


class _Search:
    """The victims taken so far and the room they make."""

    def __init__(self, shape: Shape, room: list[int], victims: Sequence[Victim], now: float) -> None:
        self.shape, self.room, self.now = shape, room, now
        self.taken: dict[int, Victim] = {}
        self.gap = 0
        self.on: dict[int, list[tuple[Victim, int]]] = {}
        self.shared: set[int] = set()  # devices of victims that hold several
        self.victims = sorted(
            victims, key=lambda v: (v.run.priority, v.run.times_preempted, -v.run.started_at, v.run.job)
        )
        for victim in self.victims:
            for i, shares in victim.gives:
                self.on.setdefault(i, []).append((victim, shares))
                if len(victim.gives) > 1:
                    self.shared.add(i)

    def close(self, gap: int) -> bool:
        """Take victims that hold `gap` card shares together; the largest first, so that they are few."""
        self.gap = gap
        for victim in sorted(self.victims, key=lambda v: (v.run.priority, -v.run.counted[1])):
            if gap <= 0:
                break
            kind, shares = victim.run.counted
            if kind == self.shape.request.kind:
                self.accept([victim])
                gap -= shares
        return gap <= 0

    def cheapest(self, members: Sequence[int]) -> tuple[Cost, list[Victim]] | None:
        """The victims after which enough of these devices have room, and their cost; greedy by device."""
        wanted = self.shape.wanted
        missing = self.shape.count - sum(self.room[i] >= wanted for i in members)
        if missing <= 0:
            return FREE_OF_COST, []
        extra: dict[int, int] = {}
        chosen: dict[int, Victim] = {}
        open_devices = [i for i in members if self.room[i] < wanted and i in self.on]
        alone: dict[int, tuple[list[Victim], Cost, int]] = {}  # devices on whose victims no other choice bears
        while missing > 0:
            lacking = {i for i in members if self.room[i] + extra.get(i, 0) < wanted}
            best: tuple[tuple[int, float, float, int], list[Victim]] | None = None
            for i in open_devices:
                option = alone.get(i)
                if option is None:
                    needed = self._clear(i, extra, chosen)
                    if needed is None:
                        continue
                    helped = sum(_helps(victim, lacking) for victim in needed)
                    option = needed, self._cost(needed), helped
                    if i not in self.shared:
                        alone[i] = option
                needed, cost, helped = option
                rank = (cost[0], cost[1] / max(1, min(helped, missing)), cost[2], i)
                if best is None or rank < best[0]:
                    best = (rank, needed)
            if best is None:
                return None
            for victim in best[1]:
                chosen[victim.run.job] = victim
                for i, shares in victim.gives:
                    extra[i] = extra.get(i, 0) + shares
            missing = self.shape.count - sum(self.room[i] + extra.get(i, 0) >= wanted for i in members)
            open_devices = [i for i in open_devices if self.room[i] + extra.get(i, 0) < wanted]
        victims = list(chosen.values())
        return self._cost(victims), victims

    def _clear(self, i: int, extra: Mapping[int, int], chosen: Mapping[int, Victim]) -> list[Victim] | None:
        """Who must leave device `i`, beyond those chosen, until it has room."""
        have, needed = self.room[i] + extra.get(i, 0), []
        for victim, shares in self.on[i]:
            if have >= self.shape.wanted:
                break
            if victim.run.job not in chosen and victim.run.job not in self.taken:
                needed.append(victim)
                have += shares
        return needed if have >= self.shape.wanted else None

    def _cost(self, victims: Sequence[Victim]) -> Cost:
        if not victims:
            return FREE_OF_COST
        ran = sum(self.now - v.run.started_at for v in victims) / 3600.0
        return max(v.run.priority for v in victims), sum(v.weight for v in victims), ran

    def accept(self, victims: Iterable[Victim]) -> None:
        """Count these as ended."""
        for victim in victims:
            self.taken[victim.run.job] = victim
            for i, shares in victim.gives:
                self.room[i] += shares

    def without_the_needless(self, space: Space) -> tuple[Victim, ...] | None:
        """The victims less those without whom it fits as well; who went most often and ran longest is spared first."""
        order = sorted(
            self.taken.values(), key=lambda v: (-v.run.priority, -v.run.times_preempted, v.run.started_at, v.run.job)
        )
        if space.find(self.shape, self.room) is None:
            return None
        for victim in order:
            for i, shares in victim.gives:
                self.room[i] -= shares
            others = sum(v.run.counted[1] for v in self.taken.values()) - victim.run.counted[1]
            if others >= self.gap and space.find(self.shape, self.room) is not None:
                del self.taken[victim.run.job]
            else:
                for i, shares in victim.gives:
                    self.room[i] += shares
        return tuple(sorted(self.taken.values(), key=lambda v: v.run.job))


def _helps(victim: Victim, lacking: Set[int]) -> int:
    """On how many of the devices that lack room the victim sits."""
    if len(victim.gives) == 1:
        return 1
    return sum(i in lacking for i, _ in victim.gives)
