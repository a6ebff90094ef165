"""How one pass decides, by example. What holds for every plan: test_plan_properties.py."""

import gc
from collections import Counter
from dataclasses import replace

import pytest

from workers.core import wait_reasons
from workers.planning.planner.fit import why_never
from workers.planning.planner.order import decayed_hours, queue_order
from workers.planning.planner.plan import plan
from workers.planning.planner.snapshot import (
    Cluster,
    Device,
    Node,
    Quota,
    Request,
    Running,
    Snapshot,
    Waiting,
    cards_of,
)
from workers.planning.planner.uncollected import uncollected

NOW = 1_000_000.0
HOUR = 3600.0


def lab(cards=4, waiting=(), running=(), gpu_quota=None):
    """One node of `cards` cards in groups of four, one cluster."""
    devices = (*(Device(i, 1, group=i // 4) for i in range(cards)), Device(99, 1, "cpu", capacity=64))
    cluster = Cluster(1, "lab", {"gpu": Quota(gpu_quota)})
    return Snapshot((Node(1, "node1"),), devices, (cluster,), tuple(running), tuple(waiting))


def job(number, gpus=1, *, owner=1, age=0.0, hours=None, priority=0, **asked):
    runtime = None if hours is None else hours * HOUR
    return Waiting(number, owner, 1, Request(gpus=gpus, **asked), NOW - age, priority, runtime)


def started(snapshot):
    return [a.job for a in plan(snapshot, NOW).assignments]


def test_planner_backfills_a_gap_only_if_the_job_ends_in_time():
    busy = Running(-1, 9, 1, ((0, 8), (1, 8), (2, 8)), NOW + 2 * HOUR, 24)
    queue = [job(1, 4, age=300), job(2, 1, age=200, hours=3, owner=2), job(3, 1, age=100, hours=1, owner=3)]

    result = plan(lab(waiting=queue, running=[busy]), NOW)

    assert [a.job for a in result.assignments] == [3]
    assert result.waits[1].code == "no_cards"
    assert result.waits[1].args == {"asked": 4, "free": 0}
    assert result.waits[1].eta == NOW + 2 * HOUR
    assert result.waits[2].code == "reserved"
    assert result.waits[2].args == {"job": 1}


def test_planner_lets_long_work_use_cards_outside_the_reservation():
    busy = Running(-1, 9, 1, tuple((i, 8) for i in range(6)), NOW + 2 * HOUR, 48)
    queue = [job(1, 4, age=300), job(2, 1, age=200, owner=2), job(3, 2, age=100, owner=3)]

    result = plan(lab(cards=8, waiting=queue, running=[busy]), NOW)

    # 4 of 8 cards suffice for job 1 and they are free in two hours without cards 6 and 7
    assert {a.job for a in result.assignments} == {2}
    assert result.waits[3].code in {"no_cards", "reserved"}


def test_planner_estimates_no_start_behind_work_without_a_known_end():
    busy = Running(-1, 9, 1, ((0, 8), (1, 8), (2, 8), (3, 8)), None, 32, started_at=NOW - 9 * HOUR)

    result = plan(replace(lab(waiting=[job(1, 4), job(2, 1)], running=[busy]), typical_runtime=60.0), NOW)

    assert [result.waits[number].eta for number in (1, 2)] == [None, None]


def test_planner_estimates_a_start_on_devices_whose_ends_are_known():
    known = Running(-1, 9, 1, ((0, 8), (1, 8)), NOW + 2 * HOUR, 16)
    endless = Running(-2, 9, 1, ((2, 8), (3, 8)), None, 16, started_at=NOW - HOUR)

    result = plan(lab(waiting=[job(1, 2), job(2, 4, owner=2)], running=[known, endless]), NOW)

    assert (result.waits[1].eta, result.waits[2].eta) == (NOW + 2 * HOUR, None)


def test_planner_says_how_many_cores_are_free_of_how_many():
    nodes = (Node(1, "one"),)
    cores = Device(7, 1, kind="cpu", capacity=8 * 2)
    busy = Running(-1, 9, 1, ((7, 8),), None)
    wants = replace(job(1, 0), request=Request(cpu_shares=16))

    result = plan(Snapshot(nodes, (cores,), (Cluster(1, "lab"),), waiting=(wants,), running=(busy,)), NOW)

    assert result.waits[1].args == {"asked": 2, "free": 1, "total": 2}


def test_planner_estimates_starts_by_the_run_time_that_kinds_expect():
    busy = Running(-1, 9, 1, ((0, 8), (1, 8), (2, 8), (3, 8)), NOW + 60, 32)
    queue = [replace(job(number, 4, age=10 - number), expected=60.0) for number in range(1, 8)]

    result = plan(lab(waiting=[*queue, job(8, 4)], running=[busy]), NOW)

    assert result.waits[8].eta == NOW + 8 * 60.0  # not seven times the four hours of work that nobody knows
    assert job(1, hours=0.01).estimated_runtime(4 * HOUR) == pytest.approx(36.0)
    assert replace(job(1, hours=0.01), expected=HOUR).estimated_runtime(4 * HOUR) == pytest.approx(36.0)


def test_planner_protects_a_large_job_from_small_ones_on_the_quota():
    busy = Running(-1, 9, 1, ((0, 8), (1, 8)), NOW + HOUR, 16)
    queue = [job(1, 4, age=500), job(2, 1, age=400, owner=2), job(3, 1, age=300, owner=2, hours=0.5)]

    result = plan(lab(cards=8, waiting=queue, running=[busy], gpu_quota=4), NOW)

    assert [a.job for a in result.assignments] == [3]
    assert result.waits[1].code == "cluster_quota"
    assert result.waits[2].code == "reserved"


def test_wait_reasons_state_shares_and_parts_of_cores_exactly():
    half_used = Running(-1, 9, 1, ((0, 6), (1, 7)), NOW + HOUR, 13)
    queue = [job(1, shares=4), job(2, 0, cpu_shares=600)]
    busy_cpu = Running(-2, 9, 1, ((99, 60),), NOW + HOUR)

    waits = plan(lab(2, waiting=queue, running=[half_used, busy_cpu], gpu_quota=None), NOW).waits

    assert (waits[1].code, waits[1].args) == ("no_share", {"asked": 4, "free": 2})
    assert wait_reasons.sentence(waits[1].code, waits[1].args).endswith("4/8 needed, at most 2/8 free on one GPU.")
    assert [cards_of(shares) for shares in (8, 4, 9, 0)] == [1, 0.5, 1.125, 0]
    limited = plan(lab(4, waiting=[job(1, shares=4)], running=[half_used], gpu_quota=2), NOW).waits[1]
    assert (limited.code, limited.args) == ("cluster_quota", {"used": 1.625, "limit": 2, "asked": 0.5})


def test_queue_order_is_urgent_then_guard_then_fair_share():
    queue = [
        job(1, age=60, owner=1),
        job(2, age=60, owner=2),
        job(3, age=7 * HOUR, owner=1),
        job(4, age=1, owner=1, priority=100),
        job(5, age=1, owner=2, priority=1),
    ]
    picture = replace(lab(cards=8, waiting=queue), usage={1: 50.0})

    assert [w.job for w in queue_order(picture, NOW)] == [4, 3, 5, 2, 1]


def test_queue_order_puts_services_first_among_equal_priorities():
    service = replace(job(3, owner=2, age=1), answers_requests=True)
    queue = [job(1, age=300), job(2, owner=3, age=200), service, job(4, priority=1), job(5, age=7 * HOUR)]

    order = [w.job for w in queue_order(replace(lab(waiting=queue), usage={2: 1000.0}), NOW)]

    assert order == [5, 4, 3, 2, 1]  # after the guard and higher priorities, before trainings that waited longer


def test_queue_order_lets_no_batch_of_one_person_pass_a_neighbour():
    batch = [job(n, age=100 - n, owner=1) for n in range(1, 9)]
    neighbour = job(50, age=1, owner=2)

    order = [w.job for w in queue_order(lab(waiting=[*batch, neighbour]), NOW)]

    assert order.index(50) <= 1


def test_planner_shares_cards_for_small_work_and_keeps_jobs_in_one_group():
    quarters = [job(n, 1, age=10 - n, shares=2) for n in range(1, 6)]

    result = plan(lab(cards=8, waiting=quarters), NOW)
    pair = plan(lab(cards=8, waiting=[job(1, 3)], running=[Running(-1, 1, 1, ((0, 8),), None, 8)]), NOW)

    used = Counter(d for a in result.assignments for _, pairs in a.places for d, _ in pairs)
    assert sorted(used.values()) == [1, 4]
    assert {d for _, pairs in pair.assignments[0].places for d, _ in pairs} == {1, 2, 3}


def test_planner_names_scattered_cards():
    devices = tuple(Device(n * 10 + i, n) for n in (1, 2) for i in range(2))
    busy = [Running(-n, 1, 1, ((n * 10, 8),), None, 8) for n in (1, 2)]
    picture = Snapshot((Node(1, "a"), Node(2, "b")), devices, (Cluster(1, "lab"),), tuple(busy), (job(1, 2),))

    wait = plan(picture, NOW).waits[1]

    assert (wait.code, wait.args) == ("scattered", {"asked": 2, "free": 2, "best": 1})


def test_planner_lets_an_impossible_request_block_nobody():
    queue = [job(1, 8, age=9 * HOUR), job(2, 4, owner=2)]

    result = plan(lab(waiting=queue), NOW)

    assert [a.job for a in result.assignments] == [2]
    assert (result.waits[1].code, result.waits[1].eta) == ("no_machine", None)


def test_why_never_says_what_to_change():
    picture = lab(cards=4, gpu_quota=8)
    machines = (picture.nodes, picture.devices)
    small = Cluster(1, "lab", {"gpu": Quota(2)})

    never = [
        why_never(Request(gpus=3), *machines, small),
        why_never(Request(gpus=5), *machines, picture.clusters[0]),
        why_never(Request(nodes=2, gpus=2), *machines, picture.clusters[0]),
        why_never(Request(cpu_shares=80), *machines, picture.clusters[0]),
        why_never(Request(gpus=1, model="H999"), *machines, picture.clusters[0]),
    ]

    assert [n.code for found in never for n in found] == [
        "over_cluster_quota",
        "too_many_on_a_node",
        "too_many_nodes",
        "too_many_cpus",
        "no_such_model",
    ]
    assert why_never(Request(gpus=4), *machines, picture.clusters[0]) == ()


def test_why_never_names_every_number_that_does_not_fit():
    picture = lab(cards=4)
    machines = (picture.nodes, picture.devices)
    small = Cluster(1, "lab", {"gpu": Quota(2, per_user=1), "cpu": Quota(4)}, per_user={"job": 0})

    cards = why_never(Request(nodes=3, gpus=5), *machines, small)
    cores = why_never(Request(nodes=2, cpu_shares=80), *machines, small)
    fits = why_never(Request(nodes=2, gpus=1), *machines, Cluster(1, "lab"))

    assert [(n.code, n.field, n.args["asked"]) for n in cards if "asked" in n.args] == [
        ("over_cluster_quota", "gpus_per_node", 15),
        ("over_user_cards", "gpus_per_node", 15),
        ("too_many_on_a_node", "gpus_per_node", 5),
        ("too_many_nodes", "nodes", 3),
    ]
    assert [n.code for n in cards if "asked" not in n.args] == ["no_jobs_allowed"]
    assert [n.code for n in cores] == ["over_cluster_cores", "no_jobs_allowed", "too_many_cpus", "too_many_nodes"]
    assert [n.code for n in fits] == ["too_many_nodes"]


def test_decayed_hours_halve_every_seven_days():
    week = 7 * 24 * HOUR

    recent = decayed_hours([(NOW - HOUR, NOW, 2)], NOW)
    old = decayed_hours([(NOW - week - HOUR, NOW - week, 2)], NOW)

    assert abs(recent - 2) < 0.01
    assert abs(old - recent / 2) < 0.001


@pytest.mark.parametrize("was_on", [True, False])
def test_uncollected_function_leaves_the_collector_as_it_was_also_where_it_fails(was_on):
    @uncollected
    def work(*, fails: bool) -> bool:
        if fails:
            raise LookupError("nothing to plan")
        return gc.isenabled()

    (gc.enable if was_on else gc.disable)()
    try:
        during = work(fails=False)
        after = [gc.isenabled()]
        with pytest.raises(LookupError):
            work(fails=True)
        after.append(gc.isenabled())
    finally:
        gc.enable()

    assert (during, after) == (False, [was_on] * 2)
