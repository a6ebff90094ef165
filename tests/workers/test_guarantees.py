"""What a cluster is guaranteed: whoever stays within it waits for nobody but a preemption's grace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.long_form import examples
from tests.workers.planner_cases import HOUR, NOW, ask, picture, run
from workers.planning.planner.fit import Space, why_never
from workers.planning.planner.limits import borrowed
from workers.planning.planner.plan import Plan, plan
from workers.planning.planner.preview import preview
from workers.planning.planner.snapshot import FULL_CARD, URGENT, Cluster, Quota, Request, Snapshot
from workers.planning.simulator.simulate import Outcome, simulate
from workers.planning.simulator.workloads import Limits, Setup, Work, Workload

LAB = Cluster(1, "lab", {"gpu": Quota(2)})
DEFAULT = Cluster(2, "default")
GUESTS = Cluster(3, "guests", {"gpu": Quota(0, borrows=True)})
CLUSTERS = (LAB, DEFAULT, GUESTS)


def asked(decided: Plan) -> set[tuple[int, int, str]]:
    return {(p.job, p.for_job, p.why) for p in decided.preemptions}


def test_guarantee_calls_cards_back_from_a_cluster_without_a_number():
    everything = run(11, 100, 101, 102, 103, cluster=2)

    decided = plan(picture([everything], [ask(1, 2)], CLUSTERS), NOW)

    assert asked(decided) == {(11, 1, "guarantee")}
    assert decided.waits[1].code == "making_room"


def test_guarantee_waits_for_no_minimum_run_time_and_for_nobody_urgent():
    ripe, fresh = run(11, 100, cluster=2), run(12, 101, cluster=2, hours=0.01)
    urgent = run(13, 102, cluster=3, priority=URGENT, preemptible=False)
    own = run(14, 103, cluster=2, preemptible=False)

    one = plan(picture([ripe, fresh, urgent, own], [ask(1)], CLUSTERS), NOW)
    two = plan(picture([ripe, fresh, urgent, own], [ask(1, 2)], CLUSTERS), NOW)
    larger = (Cluster(1, "lab", {"gpu": Quota(3)}), DEFAULT, GUESTS)
    full = plan(picture([replace(ripe, preemptible=False), urgent], [ask(1, 3)], larger), NOW)

    assert asked(one) == {(11, 1, "guarantee")}  # the others only where that is not enough
    assert len(asked(two)) == 2
    assert asked(two) > {(11, 1, "guarantee")}
    assert asked(full) == {(13, 1, "guarantee")}


def test_guarantee_keeps_unwilling_work_of_others_off_what_it_needs():
    queue = [ask(n, cluster=2, age=60 * n) for n in range(1, 5)]

    unwilling = plan(picture([], queue, CLUSTERS), NOW)
    willing = plan(picture([], [replace(job, preemptible=True) for job in queue], CLUSTERS), NOW)

    assert len(unwilling.assignments) == 2
    assert {(wait.code, tuple(wait.args.values())) for wait in unwilling.waits.values()} == {
        ("guaranteed_cards", (2, 2, 1))
    }
    assert len(willing.assignments) == 4


def test_guarantee_of_nobody_leaves_a_cluster_without_a_number_all_there_is():
    queue = [ask(n, cluster=2) for n in range(1, 5)]

    decided = plan(picture([], queue, (DEFAULT, GUESTS)), NOW)

    assert len(decided.assignments) == 4


def test_guarantee_goes_before_older_work_that_borrows():
    busy = run(11, 100, 101, 102, cluster=2, preemptible=False)
    queue = [ask(1, cluster=2, age=9 * HOUR, preemptible=True), ask(2, 2, cluster=2, age=8 * HOUR), ask(3)]
    urgent = ask(4, 2, cluster=2, priority=URGENT, preemptible=True)

    decided = plan(picture([busy], queue, CLUSTERS), NOW)
    beside_urgent = plan(picture([busy], [urgent, ask(3)], CLUSTERS), NOW)

    assert [a.job for a in decided.assignments] == [3]
    assert [a.job for a in beside_urgent.assignments] == [3]  # what waits in vain keeps nothing from it


def test_guaranteed_to_nobody_is_kept_for_the_first_large_job():
    busy = run(11, 100, cluster=2, preemptible=False)
    queue = [ask(1, 2, cluster=2, age=HOUR), ask(2, cluster=2, age=60)]

    decided = plan(picture([busy], queue, CLUSTERS), NOW)

    assert decided.assignments == ()
    assert (decided.waits[1].code, decided.waits[2].code) == ("guaranteed_cards", "reserved")


def test_guarantee_of_others_refuses_at_submit_what_would_wait_for_ever():
    there = picture([], [], CLUSTERS)

    def never(gpus, cluster, **more):
        found = why_never(Request(gpus=gpus), there.nodes, there.devices, cluster, clusters=CLUSTERS, **more)
        return next(((one.code, one.field, one.args) for one in found), None)

    assert never(3, DEFAULT) == ("over_unowned_cards", "preemptible", {"asked": 3, "limit": 2})
    assert [never(2, DEFAULT), never(3, DEFAULT, preemptible=True), never(3, GUESTS)] == [None, None, None]
    assert preview(there, ask(0, 3, cluster=2), NOW).kind == "never"


def test_guarantee_of_others_counts_in_estimates():
    ends, long_since = NOW + 9 * HOUR, ask(1, 3, cluster=2, age=HOUR)
    busy = [run(11, 100, cluster=2, preemptible=False), run(12, 101, cluster=2, preemptible=False)]
    next_one = ask(2, cluster=2, age=60)

    waits = plan(picture(busy, [long_since, next_one], CLUSTERS), NOW).waits
    willing = plan(picture(busy, [replace(next_one, preemptible=True)], CLUSTERS), NOW)

    assert (waits[1].code, waits[1].eta) == ("guaranteed_cards", None)
    assert waits[2].eta == ends
    assert [a.job for a in willing.assignments] == [2]


def test_turn_of_work_that_borrows_comes_from_others_that_borrow():
    ahead = [replace(run(n, 99 + n - 10, cluster=2), queued_at=NOW - HOUR) for n in (11, 12)]
    within = [replace(run(n, 99 + n - 10, cluster=1), queued_at=NOW - HOUR) for n in (13, 14)]
    patient = ask(1, 2, cluster=3, age=20 * HOUR)

    decided = plan(picture([*ahead, *within], [patient], CLUSTERS), NOW)

    assert asked(decided) == {(11, 1, "turn"), (12, 1, "turn")}


@st.composite
def workloads(draw: st.DrawFn, *, topology: bool) -> Workload:
    """Clusters with and without numbers, and what they send in a day.

    Args:
        topology: gangs and shares of cards; else every job takes one whole card.
    """
    setup = Setup(draw(st.integers(1, 3)), draw(st.integers(1, 5)), restart_overhead_s=30, lost_s=300, grace_s=60)
    left, limits = setup.nodes * setup.cards, []
    for n in range(draw(st.integers(2, 4))):
        guaranteed = draw(st.none() | st.integers(0, left))
        left -= guaranteed or 0
        limits.append(Limits(f"lab{n}", guaranteed, guaranteed is not None and draw(st.booleans())))
    works = []
    for n in range(draw(st.integers(1, 24))):
        shares = draw(st.sampled_from([1, 4, FULL_CARD, FULL_CARD])) if topology else FULL_CARD
        whole = topology and shares == FULL_CARD
        works.append(
            Work(
                60.0 * draw(st.integers(0, 24 * 60)),
                f"user{n % 3}",
                60.0 * draw(st.integers(1, 600)),
                draw(st.none() | st.just(36_000.0)),
                draw(st.sampled_from(limits)).name,
                draw(st.integers(1, setup.nodes)) if whole else 1,
                draw(st.integers(1, setup.cards)) if whole else 1,
                shares,
                draw(st.sampled_from([0, 0, 1, URGENT])),
                draw(st.booleans()),
            )
        )
    works.sort(key=lambda work: work.arrival_s)
    return Workload("drawn", tuple(works), replace(setup, clusters=tuple(limits)), days=1.0)


@given(workloads(topology=False))
@settings(max_examples=examples(150), deadline=None)
def test_who_stays_within_the_guarantee_waits_for_the_grace_at_most(workload):
    outcome = simulate(workload)

    limits = {one.name: one.guaranteed or 0 for one in workload.setup.clusters}
    for job, since, until in waits(outcome):
        cluster = workload.works[job].cluster
        if until - since > workload.setup.grace_s:
            assert most_wanted(outcome, cluster, since, until) > limits[cluster]


@given(workloads(topology=True))
@settings(max_examples=examples(100), deadline=None)
def test_gang_within_the_guarantee_waits_only_for_what_leaving_work_cannot_clear(workload):
    """Exceptions: work that gives way stands beside work that does not, or an older gang with a right waits too."""

    def decide(snapshot: Snapshot, now: float) -> Plan:
        decided = plan(snapshot, now)
        entitled = [job for job in snapshot.waiting if within_guarantee(snapshot, job.cluster)]
        stuck = [job for job in entitled if decided.waits.get(job.job) and decided.waits[job.job].code != "making_room"]
        if len(entitled) == 1 and stuck:
            lent = borrowed(snapshot.clusters, snapshot.running)
            space = Space(snapshot.nodes, snapshot.devices)
            for one in snapshot.running:
                if one.job not in lent and not one.preempting:
                    space.occupy(one.held)
            shape = space.shape(stuck[0].request, stuck[0].kind)
            assert space.find(shape, space.free) is None
        return decided

    simulate(workload, decide)


def waits(outcome: Outcome) -> Iterator[tuple[int, float, float]]:
    """(job, from, until) of every time in the queue; what never started waits for ever."""
    for job, work in enumerate(outcome.workload.works):
        spans = [span for span in outcome.spans if span.job == job]
        ends = [work.arrival_s, *(span.ended for span in spans if span.preempted)]
        begins = [span.began for span in spans] + [float("inf")] * (job in outcome.never_started)
        yield from ((job, since, until) for since, until in zip(ends, begins, strict=True))


def most_wanted(outcome: Outcome, cluster: str, since: float, until: float) -> float:
    """The most cards that a cluster's jobs ask for at one moment, running and waiting ones together."""
    ended = {span.job: span.ended for span in outcome.spans}  # the last attempt ends last
    changes = []
    for job, work in enumerate(outcome.workload.works):
        if work.cluster == cluster:
            changes += [(work.arrival_s, work.cards), (ended.get(job, float("inf")), -work.cards)]
    changes.sort()
    level, most = 0.0, 0.0
    for (at, change), (after, _) in pairwise([*changes, (float("inf"), 0.0)]):
        level += change
        if after > since and at <= until:
            most = max(most, level)
    return most


def within_guarantee(snapshot: Snapshot, cluster: int) -> bool:
    """Whether all that the cluster runs and waits for together is no more than it is guaranteed."""
    about = next(one for one in snapshot.clusters if one.id == cluster)
    wanted = sum(one.counted[1] for one in snapshot.running if one.cluster == cluster)
    wanted += sum(one.request.counted[1] for one in snapshot.waiting if one.cluster == cluster)
    return wanted <= (about.quota("gpu").guaranteed or 0) * FULL_CARD
