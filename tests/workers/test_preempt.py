"""Who makes room for whom: urgent work, guarantees, windows; and what is never asked of anybody."""

from dataclasses import replace

from tests.workers.planner_cases import HOUR, NOW, ask, machines, picture, run
from workers.planning.planner.fit import why_never
from workers.planning.planner.plan import plan
from workers.planning.planner.policy import Policy
from workers.planning.planner.snapshot import (
    Cluster,
    Device,
    Node,
    Quota,
    Request,
    ResourceGroup,
    Running,
    Snapshot,
    Waiting,
    Window,
)


def asked(decided):
    return {(p.job, p.for_job, p.why) for p in decided.preemptions}


def test_planner_preempts_the_fewest_and_youngest_for_urgent_work():
    old, young, pair = run(11, 100, hours=9), run(12, 101, hours=1), run(13, 102, 103, hours=20)

    one = plan(picture([old, young, pair], [ask(1, 1, priority=100)]), NOW)
    two = plan(picture([old, young, pair], [ask(1, 2, priority=100)]), NOW)

    assert asked(one) == {(12, 1, "urgent")}
    assert asked(two) == {(13, 1, "urgent")}
    assert one.waits[1].code == "making_room"
    assert one.waits[1].eta == NOW + Policy().grace_s


def test_planner_preempts_lower_priority_before_younger():
    busy = [run(11, 100, hours=9, priority=-5), run(12, 101, hours=1), run(13, 102, 103)]

    assert asked(plan(picture(busy, [ask(1, 1, priority=100)]), NOW)) == {(11, 1, "urgent")}


def test_planner_spares_the_unwilling_urgent_new_or_already_requested():
    leaving = run(14, 103, preempting=True, for_job=9)
    busy = [run(11, 100, preemptible=False), run(12, 101, priority=100), run(13, 102, hours=0.1), leaving]

    decided = plan(picture(busy, [ask(1, 2, priority=100), ask(9, 1, priority=100)]), NOW)

    assert decided.preemptions == ()
    assert decided.waits[9].code == "making_room"
    assert decided.waits[1].code == "no_cards"


def test_planner_lets_whoever_waits_have_the_cards_that_nobody_uses():
    idle, worked_in = run(11, 100, hours=9, preemptible=False, idle=True), run(12, 101, preemptible=False)
    busy = [idle, worked_in, run(13, 102, 103)]

    assert asked(plan(picture(busy, [ask(1, 1)]), NOW)) == {(11, 1, "idle")}
    assert plan(picture(busy, [ask(1, 2)]), NOW).preemptions == ()
    assert plan(picture([idle, worked_in], [ask(1, 2)]), NOW).preemptions == ()  # two are free
    assert plan(picture([replace(idle, idle=False), *busy[1:]], [ask(1, 1)]), NOW).preemptions == ()


def test_planner_takes_unused_cards_before_those_of_willing_work():
    idle, willing = run(11, 100, hours=9, preemptible=False, idle=True), run(12, 101, hours=1, priority=-9)
    busy = [idle, willing, run(13, 102, 103, preemptible=False)]

    assert asked(plan(picture(busy, [ask(1, 1, priority=100)]), NOW)) == {(11, 1, "idle")}
    both = plan(picture(busy, [ask(1, 2, priority=100)]), NOW)
    assert asked(both) == {(11, 1, "idle"), (12, 1, "urgent")}


def test_planner_leaves_urgent_and_new_work_its_cards_though_nobody_uses_them():
    busy = [run(11, 100, 101, priority=100, idle=True), run(12, 102, 103, hours=0.05, idle=True)]

    assert plan(picture(busy, [ask(1, 1)]), NOW).preemptions == ()


def test_planner_displaces_within_a_cluster_only_for_urgent_work():
    decided = plan(picture([run(11, 100, 101, 102, 103)], [ask(1, 1, priority=99)]), NOW)

    assert decided.preemptions == ()


def test_planner_clears_the_nodes_that_cost_least_for_a_gang():
    busy = [run(11, 100, 101, 102, 103), run(12, 200, 201), run(13, 202, 203), run(14, 300, 301, 302, 303, hours=1)]
    busy += [run(15, 400, preemptible=False)]

    decided = plan(picture(busy, [ask(1, 4, nodes=2, priority=100)], nodes=4), NOW)

    assert asked(decided) == {(11, 1, "urgent"), (14, 1, "urgent")}


def test_planner_keeps_freed_cards_for_whom_they_were_freed():
    leaving = run(11, 100, 101, 102, preempting=True, for_job=1)
    queue = [ask(1, 4, age=60, priority=100), ask(2, 1, age=9 * HOUR), ask(3, 1, age=30, priority=100, runtime=30.0)]

    meanwhile = plan(picture([leaving], queue), NOW)
    after = plan(picture([], [replace(queue[0], promised=True), *queue[1:]]), NOW)

    assert meanwhile.assignments == ()
    assert meanwhile.preemptions == ()
    assert [a.job for a in after.assignments] == [1]


def test_planner_calls_back_borrowed_cards_for_a_guarantee_and_no_others():
    clusters = [Cluster(1, "a", {"gpu": Quota(2, borrows=True)}), Cluster(2, "b", {"gpu": Quota(2, borrows=True)})]
    own = [run(11, 100, hours=9, preemptible=False), run(12, 101, hours=8, preemptible=False)]
    lent = [run(13, 102, hours=7, preemptible=False), run(14, 103, hours=6, preemptible=False)]

    one = plan(picture([*own, *lent], [ask(1, 1, cluster=2)], clusters), NOW)
    beyond = plan(picture([*own, *lent], [ask(1, 4, cluster=2)], clusters), NOW)
    own_again = plan(picture([*own, *lent], [ask(1, 1, cluster=1)], clusters), NOW)

    assert asked(one) == {(14, 1, "guarantee")}
    assert beyond.preemptions == own_again.preemptions == ()
    assert own_again.waits[1].code == "nothing_idle"
    assert own_again.waits[1].args == {"used": 4, "limit": 2, "asked": 1}


def test_planner_lends_idle_cards_after_everybody_with_a_right():
    clusters = [Cluster(1, "a", {"gpu": Quota(1, borrows=True)}), Cluster(2, "b", {"gpu": Quota(3)})]
    queue = [ask(n, 1, cluster=1, age=7 * HOUR) for n in range(1, 5)] + [ask(9, 2, cluster=2)]

    decided = plan(picture([], queue, clusters), NOW)

    assert [a.job for a in decided.assignments] == [1, 9, 2]


def test_planner_gives_urgent_work_of_a_full_cluster_only_its_own_cards():
    clusters = [Cluster(1, "a", {"gpu": Quota(2)}), Cluster(2, "b")]
    busy = [run(11, 100, hours=5), run(12, 101, hours=4), run(21, 102, cluster=2, hours=1)]

    decided = plan(picture(busy, [ask(1, 1, priority=100)], clusters), NOW)

    leaving = [busy[0], replace(busy[1], preempting=True, for_job=1), busy[2]]
    meanwhile = plan(picture(leaving, [ask(1, 1, priority=100)], clusters), NOW)

    assert asked(decided) == {(12, 1, "urgent")}
    assert meanwhile.preemptions == ()
    assert meanwhile.waits[1].code == "making_room"


def test_planner_keeps_machines_for_a_window_and_makes_others_leave():
    daytime = ResourceGroup(1, "development", frozenset({1}), frozenset({"environment"}), (Window(9 * 60, 21 * 60),))
    busy = [run(11, 100, 101, 102, 103)]
    queue = [ask(1, kind="environment"), ask(2, age=99)]

    day = plan(picture(busy, queue, groups=(daytime,)), NOW)
    empty = plan(picture([], queue, groups=(daytime,)), NOW)
    night = plan(picture([], queue, groups=(daytime,), utc_offset_s=6 * HOUR), NOW)

    assert asked(day) == {(11, 1, "window")}
    assert [a.job for a in empty.assignments] == [1]
    assert (empty.waits[2].code, empty.waits[2].args) == ("kept_group", {"group": "development"})
    assert {a.job for a in night.assignments} == {1, 2}


def test_resource_group_window_past_midnight_begins_on_its_weekdays():
    night = Window(21 * 60, 9 * 60, frozenset({5}))  # Saturdays
    group = ResourceGroup(1, "training", frozenset({1}), frozenset({"training"}), (night,))
    started = []

    for hours in (0, 5, 16, 17, 29):  # Saturday 16:00 and 21:00, Sunday 08:00, 09:00 and 21:00
        look = picture([], [ask(1, kind="environment")], groups=(group,))
        started.append(bool(plan(look, NOW + hours * HOUR).assignments))

    assert started == [True, False, False, True, True]


def test_planner_keeps_npus_in_their_group_of_four():
    there, devices = machines(2, 8, "npu")
    npu = Request(1, 2, device_kind="npu")
    base = Snapshot(there[:1], devices[:8], (Cluster(1, "lab"),))
    rings = [run(11, 100, 101, 102, device_kind="npu"), run(12, 104, 105, 106, device_kind="npu")]

    across = plan(replace(base, running=tuple(rings), waiting=(Waiting(1, 1, 1, npu, NOW),)), NOW)
    within = plan(replace(base, running=(rings[0],), waiting=(Waiting(1, 1, 1, npu, NOW),)), NOW)
    whole = plan(replace(base, waiting=(Waiting(1, 1, 1, replace(npu, gpus=8), NOW),)), NOW)
    refused = [
        why_never(replace(npu, gpus=3), there, devices, base.clusters[0]),
        why_never(replace(npu, nodes=2, gpus=4), there, devices, base.clusters[0]),
        why_never(replace(npu, shares=4), there, devices, base.clusters[0]),
    ]

    assert across.waits[1].code == "scattered"
    assert {d // 4 for d, _ in within.assignments[0].places[0][1]} == {26}  # cards 104 to 107
    assert len(whole.assignments[0].places[0][1]) == 8
    assert [never.code for found in refused for never in found] == [
        "count_not_allowed",
        "distributed_count",
        "not_shareable",
    ]
    assert why_never(replace(npu, nodes=2, gpus=8), there, devices, base.clusters[0]) == ()


def test_why_never_wants_a_share_to_amount_to_the_requested_memory():
    there, devices = machines()
    small = Request(1, 1, shares=2, card_memory_mib=5_000)

    never = why_never(small, there, devices, Cluster(1, "lab"))
    enough = why_never(replace(small, shares=3), there, devices, Cluster(1, "lab"))

    assert [(one.code, one.field) for one in never] == [("too_little_memory", "share")]
    assert enough == ()


def test_planner_limits_environments_by_themselves():
    lab = Cluster(1, "lab", {}, {"job": 1, "environment": 1})
    mine = [replace(run(1, 100, counts_as="environment"), owner=7)]
    queue = [replace(ask(2, counts_as="environment"), owner=7), replace(ask(3), owner=7)]

    decided = plan(picture(mine, queue, [lab]), NOW)

    assert [a.job for a in decided.assignments] == [3]
    assert decided.waits[2].code == "user_environments"


def test_planner_makes_work_let_ahead_give_way_after_half_a_day():
    days = 24 * HOUR
    ahead, before = run(11, 100, 101), run(12, 102, hours=60)
    ahead = replace(ahead, queued_at=NOW - 5 * HOUR)
    stays = replace(run(13, 103, preemptible=False), queued_at=NOW - 5 * HOUR)
    big = ask(1, 2, age=27 * HOUR)

    due = plan(picture([ahead, before, stays], [big]), NOW)
    early = plan(picture([ahead, before, stays], [ask(1, 2, age=11 * HOUR)]), NOW)
    in_order = plan(picture([replace(ahead, queued_at=NOW - 3 * days), before, stays], [big]), NOW)

    assert asked(due) == {(11, 1, "turn")}
    assert early.preemptions == in_order.preemptions == ()


def test_planner_lets_willing_work_precede_a_reservation_that_recalls_it():
    busy = run(11, 100, 101, 102, preemptible=False)
    queue = [ask(1, 4, age=4 * HOUR), ask(2, age=HOUR, preemptible=True), ask(3, age=2 * HOUR)]

    decided = plan(picture([busy], queue), NOW)

    assert [a.job for a in decided.assignments] == [2]
    assert decided.waits[3].code == "reserved"


def test_planner_policy_can_switch_preemption_off():
    decided = plan(picture([run(11, 100, 101, 102, 103)], [ask(1, 1, priority=100)]), NOW, Policy(preempts=False))

    assert decided.preemptions == ()


def test_planner_returns_borrowed_cores_to_their_owners():
    there = (Node(1, "node1"),)
    cores = Device(109, 1, "cpu", capacity=64)
    lab, guests = (Cluster(n, f"lab{n}", {"cpu": Quota(4, borrows=True)}) for n in (1, 2))
    held = tuple(
        Running(job, job, 2, ((109, 16),), None, started_at=NOW - (10 - job) * HOUR, priority=0) for job in (1, 2, 3, 4)
    )
    wants = Waiting(9, 9, 1, Request(cpu_shares=16), NOW - 60)

    decided = plan(Snapshot(there, (cores,), (lab, guests), held, (wants,)), NOW)

    assert asked(decided) == {(4, 9, "guarantee")}  # the last two stand beyond the four cores of their cluster


def test_planner_says_when_a_cluster_has_no_cores_left():
    lab = Cluster(1, "lab", {"cpu": Quota(4, per_user=3)})
    held = (Running(1, 1, 1, ((109, 16),), None, started_at=NOW),)
    asks = tuple(
        Waiting(job, owner, 1, Request(cpu_shares=cores * 8), NOW) for job, owner, cores in ((2, 1, 2), (3, 2, 3))
    )

    told = plan(Snapshot((Node(1, "node1"),), (Device(109, 1, "cpu", capacity=640),), (lab,), held, asks), NOW).waits

    assert {job: (wait.code, dict(wait.args)) for job, wait in told.items()} == {
        2: ("user_cores", {"used": 2, "limit": 3, "asked": 2}),
        3: ("cluster_cores", {"used": 2, "limit": 4, "asked": 3}),
    }
