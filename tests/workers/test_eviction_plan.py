"""Who is evicted, who comes back when, and what must hold however that goes on."""

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.workers.planner_cases import HOUR, LAB, NOW, ask, picture, run
from workers.planning.planner import record
from workers.planning.planner.plan import plan
from workers.planning.planner.policy import DEFAULT
from workers.planning.planner.snapshot import URGENT, Cluster, Device, Node, Quota, Request, Running, Snapshot, Waiting

LENDING = (
    Cluster(1, "owners", {"gpu": Quota(4, True)}),
    Cluster(2, "guests", {"gpu": Quota(0, True)}),
)


def with_memory(snapshot, *mib):
    nodes = tuple(replace(node, spare_mib=spare) for node, spare in zip(snapshot.nodes, mib, strict=True))
    return replace(snapshot, nodes=nodes)


def unwilling(job, *devices, **more):
    return run(job, *devices, preemptible=False, evictable=True, **more)


def away(job, *devices, since=HOUR, **more):
    one = run(job, *devices, preemptible=False, **more)
    return replace(one, held=(), away=one.held, evicted_since=NOW - since)


def left(decided):
    return {(p.job, p.evict) for p in decided.preemptions}


def test_planner_evicts_for_urgent_work_where_host_memory_allows():
    seen = picture([unwilling(1, 100, 101, 102, 103)], [ask(9, 2, priority=URGENT)])

    assert left(plan(with_memory(seen, 64_000), NOW)) == {(1, True)}
    assert left(plan(with_memory(seen, 63_999), NOW)) == set()
    assert left(plan(seen, NOW)) == set()


def test_planner_preempts_jobs_with_checkpoints_before_evicting():
    seen = picture([unwilling(1, 100, 101), run(2, 102, 103, hours=5)], [ask(9, 2, priority=URGENT)])

    assert left(plan(with_memory(seen, 200_000), NOW)) == {(2, False)}


def test_planner_evicts_borrowed_work_and_ends_it_without_host_memory():
    guest = unwilling(1, 100, 101, 102, 103, cluster=2)
    seen = picture([guest], [ask(9, 1, cluster=1)], LENDING)

    assert left(plan(with_memory(seen, 64_000), NOW)) == {(1, True)}
    assert left(plan(with_memory(seen, 10_000), NOW)) == {(1, False)}


def test_planner_does_not_evict_two_that_host_memory_cannot_hold():
    both = [unwilling(1, 100, 101), unwilling(2, 102, 103)]
    seen = picture(both, [ask(9, 4, priority=URGENT)])

    assert left(plan(with_memory(seen, 64_000), NOW)) == {(1, True), (2, True)}
    assert left(plan(with_memory(seen, 50_000), NOW)) == set()


def test_planner_gives_the_memory_of_one_eviction_to_no_other():
    both = [unwilling(1, 100, 101), unwilling(2, 102, 103)]
    seen = picture(both, [ask(8, 2, priority=URGENT, age=90), ask(9, 2, priority=URGENT)])

    assert len(plan(with_memory(seen, 40_000), NOW).preemptions) == 1


def test_planner_evicts_neither_unwilling_nor_urgent_for_ordinary_work():
    assert left(plan(with_memory(picture([unwilling(1, 100, 101, 102, 103)], [ask(9)]), 64_000), NOW)) == set()
    urgent = unwilling(1, 100, 101, 102, 103, priority=URGENT)
    assert left(plan(with_memory(picture([urgent], [ask(9, priority=URGENT)]), 64_000), NOW)) == set()


def test_planner_brings_the_evicted_back_before_everybody_else():
    seen = picture([away(1, 100, 101)], [ask(9, 4), ask(8, 3), ask(7, 2)])

    decided = plan(seen, NOW)

    assert decided.returns == (1,)
    assert [(one.job, one.places) for one in decided.assignments] == [(7, ((1, ((102, 8), (103, 8))),))]


def test_planner_lets_promised_and_urgent_work_precede_returns_for_a_while():
    for first in (ask(9, 4, promised=True), ask(9, 4, priority=URGENT)):
        decided = plan(picture([away(1, 100, 101)], [first]), NOW)
        assert ([one.job for one in decided.assignments], decided.returns) == ([9], ())
    long_ago = away(1, 100, 101, since=DEFAULT.evicted_s)
    assert plan(picture([long_ago], [ask(9, 4, priority=URGENT)]), NOW).returns == (1,)


def test_planner_returns_borrowed_work_after_owners_of_the_cards():
    guest = away(1, 100, 101, 102, 103, cluster=2)

    decided = plan(picture([guest], [ask(9, 1, cluster=1)], LENDING), NOW)
    assert ([one.job for one in decided.assignments], decided.returns) == ([9], ())
    assert plan(picture([guest], [ask(9, 1, cluster=2)], LENDING), NOW).returns == (1,)


def test_planner_keeps_evicted_cards_from_work_that_would_outlive_the_rest():
    busy = replace(run(2, 101), ends_at=NOW + HOUR)
    there = [away(1, 100, 101), busy, run(3, 102, 103)]

    long, short = (plan(picture(there, [ask(9, 1, runtime=hours * HOUR)]), NOW) for hours in (8, 0.5))

    assert (long.returns, long.assignments, long.waits[9].code) == ((), (), "reserved")
    assert [one.places[0][1] for one in short.assignments] == [((100, 8),)]


def test_planner_returns_to_a_drained_machine_but_not_to_a_failing_card():
    seen = picture([away(1, 100)], [])
    sick = replace(seen, devices=tuple(replace(one, healthy=one.id != 100) for one in seen.devices))

    assert plan(sick, NOW).returns == ()
    assert plan(replace(seen, nodes=(replace(seen.nodes[0], accepts=False),)), NOW).returns == (1,)


def test_planner_counts_evicted_jobs_in_the_clusters_number():
    full = (Cluster(1, "lab", {"gpu": Quota(2)}),)

    decided = plan(picture([away(1, 100, 101), run(2, 102, 103), run(3, 100, 101)], [ask(9)], full), NOW)

    assert decided.waits[9].code == "cluster_quota"


def test_decision_record_with_evictions_and_returns_replays():
    evicts = picture([unwilling(1, 100, 101, 102, 103)], [ask(9, 4, priority=URGENT)])
    for snapshot in (with_memory(evicts, 64_000), picture([away(1, 100)], [])):
        found = record.load(record.dump(record.decide(snapshot, NOW)))
        assert found.replay() == found.decided == plan(snapshot, NOW)
        said = list(record.lines(found))
        assert "the same plan" in said[0]
        assert any(line.startswith(("evict 1 for 9", "bring back 1")) for line in said)


CARDS, CARD_MIB = 4, 16_000


@dataclass
class World:
    """Two machines of four cards on which jobs come, go, are evicted and come back; it does what the plan says."""

    spare: int
    now: float = NOW
    running: dict[int, Running] = field(default_factory=dict)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    homes: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    unwilling: set[int] = field(default_factory=set)
    evicted: Counter[int] = field(default_factory=Counter)
    ended: set[int] = field(default_factory=set)

    def host_mib(self, node: int) -> int:
        return sum(
            CARD_MIB * shares // 8 for run in self.running.values() for d, shares in run.away if d // 100 == node
        )

    def step(self, seconds: float) -> None:
        """One pass, done at once; then time passes and what has ended leaves."""
        nodes = tuple(Node(n, f"node{n}", True, max(0, self.spare - self.host_mib(n))) for n in (1, 2))
        devices = tuple(Device(n * 100 + i, n, memory_mib=CARD_MIB) for n in (1, 2) for i in range(CARDS))
        seen = Snapshot(nodes, devices, LAB, tuple(self.running.values()), tuple(self.waiting.values()))
        decided = plan(seen, self.now)
        if decided.returns or decided.preemptions:
            assert record.load(record.dump(record.decide(seen, self.now))).replay() == decided
        for job in decided.returns:
            back = self.running[job]
            self.running[job] = replace(back, held=back.away, away=(), started_at=self.now)
        for one in decided.assignments:
            asked = self.waiting.pop(one.job)
            held = tuple(pair for _, pairs in one.places for pair in pairs)
            self.running[one.job] = Running(
                one.job, asked.owner, asked.cluster, held, self.now + (asked.runtime or HOUR),
                asked.request.card_shares,
                priority=asked.priority, started_at=self.now, evictable=one.job in self.unwilling,
            )  # fmt: skip
            self.homes[one.job] = held
        for gone in decided.preemptions:
            assert gone.evict
            leaves = self.running[gone.job]
            self.running[gone.job] = replace(leaves, held=(), away=leaves.held, evicted_since=self.now)
            self.evicted[gone.job] += 1
            self.waiting[gone.for_job] = replace(self.waiting[gone.for_job], promised=True)
        self.check()
        self.now += seconds
        for job, held in list(self.running.items()):
            if held.away:
                self.running[job] = replace(held, ends_at=(held.ends_at or self.now) + seconds)  # its time stands still
            elif held.ends_at is not None and held.ends_at <= self.now:
                del self.running[job]
                self.ended.add(job)

    def check(self) -> None:
        used: Counter[int] = Counter()
        for job, one in self.running.items():
            assert bool(one.held) != bool(one.away)  # somewhere, and in one place
            assert (one.held or one.away) == self.homes[job]  # the same cards, always
            for device, shares in one.held:
                used[device] += shares
        assert all(shares <= 8 for shares in used.values())
        assert all(self.host_mib(node) <= self.spare for node in (1, 2))


@settings(max_examples=30, deadline=None)
@given(
    spare=st.sampled_from([0, 20_000, 40_000, 200_000]),
    arrivals=st.lists(
        st.tuples(
            st.integers(1, 4),
            st.sampled_from([0, 0, URGENT]),
            st.sampled_from([600.0, HOUR, 3 * HOUR]),
            st.booleans(),
            st.sampled_from([60.0, 900.0, HOUR]),
        ),
        max_size=14,
    ),
)
def test_planner_keeps_evicted_work_on_its_cards_and_within_memory(spare, arrivals):
    world = World(spare)
    for job, (gpus, priority, runtime, may_leave, gap) in enumerate(arrivals):
        world.waiting[job] = Waiting(job, job % 3, 1, Request(1, gpus), world.now, priority, runtime)
        if may_leave:
            world.unwilling.add(job)
        world.step(gap)
    for _ in range(80):
        if not world.running and not world.waiting:
            break
        world.step(HOUR)

    assert world.ended == set(range(len(arrivals)))
    event(f"{min(3, sum(world.evicted.values()))} evictions")
