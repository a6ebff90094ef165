"""What must hold for every plan, whatever the cluster and the queue look like."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from workers.scheduler.fit import Space, can_ever_fit
from workers.scheduler.limits import Ledger
from workers.scheduler.order import GUARD_S, decayed_hours, queue_order
from workers.scheduler.plan import plan
from workers.scheduler.snapshot import Cluster, Device, Node, Quota, Request, Running, Snapshot, Waiting

NOW = 1_000_000.0
HOUR = 3600.0

requests = st.one_of(
    st.builds(Request, nodes=st.integers(1, 3), gpus=st.integers(1, 4)),
    st.builds(Request, gpus=st.just(1), shares=st.integers(1, 7)),
    st.builds(Request, nodes=st.integers(1, 2), cpu_shares=st.integers(1, 40)),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A small cluster, partly busy, with a queue of up to 14 jobs."""
    nodes = tuple(Node(n, f"node{n}", draw(st.booleans()) or n == 0) for n in range(draw(st.integers(1, 4))))
    devices = []
    for node in nodes:
        devices += [
            Device(node.id * 10 + i, node.id, group=i // 2, healthy=draw(st.integers(0, 9)) > 0)
            for i in range(draw(st.integers(0, 4)))
        ]
        devices.append(Device(node.id * 10 + 9, node.id, kind="cpu", capacity=8 * draw(st.integers(1, 6))))
    limit = st.none() | st.integers(0, 8)
    clusters = tuple(
        Cluster(c, f"lab{c}", {"gpu": Quota(draw(limit), per_user=draw(limit))}, draw(limit)) for c in range(2)
    )
    running = []
    for device in devices:
        if draw(st.booleans()):
            taken = draw(st.integers(1, device.capacity))
            ends = draw(st.none() | st.floats(NOW - HOUR, NOW + 9 * HOUR))
            on_card = taken if device.kind == "gpu" else 0
            running.append(Running(-device.id - 1, draw(st.integers(0, 2)), 0, ((device.id, taken),), ends, on_card))
    waiting = tuple(
        Waiting(
            job,
            draw(st.integers(0, 2)),
            draw(st.integers(0, 1)),
            draw(requests),
            NOW - draw(st.floats(0, 12 * HOUR)),
            draw(st.sampled_from([0, 0, 0, 1, 100])),
            draw(st.none() | st.floats(60, 24 * HOUR)),
        )
        for job in range(draw(st.integers(0, 14)))
    )
    return Snapshot(nodes, tuple(devices), clusters, tuple(running), waiting)


def taken(snapshot: Snapshot) -> Counter[int]:
    used: Counter[int] = Counter()
    for run in snapshot.running:
        used.update(dict(run.held))
    return used


@given(snapshots())
@settings(max_examples=300, deadline=None)
def test_nothing_is_ever_overbooked(snapshot):
    used = taken(snapshot)
    devices = {d.id: d for d in snapshot.devices}
    up = {n.id for n in snapshot.nodes if n.accepts}

    for start in plan(snapshot, NOW).assignments:
        for node, pairs in start.places:
            for device, shares in pairs:
                used[device] += shares
                assert devices[device].node == node
                assert devices[device].healthy
                assert node in up

    assert all(shares <= devices[d].capacity for d, shares in used.items())


@given(snapshots())
@settings(max_examples=300, deadline=None)
def test_limits_of_cluster_and_person_hold(snapshot):
    jobs = {w.job: w for w in snapshot.waiting}
    before: Counter[object] = Counter()
    after: Counter[object] = Counter()
    for run in snapshot.running:
        who = (run.cluster, run.owner)
        before.update({run.cluster: run.card_shares, who: run.card_shares, (*who, "jobs"): 1})

    for start in plan(snapshot, NOW).assignments:
        job = jobs[start.job]
        who = (job.cluster, job.owner)
        after.update({job.cluster: job.request.card_shares, who: job.request.card_shares, (*who, "jobs"): 1})

    for cluster in snapshot.clusters:
        for key, added in after.items():
            total = before[key] + added
            quota = cluster.quota("gpu")
            if key == cluster.id and quota.guaranteed is not None and added:
                assert total <= quota.guaranteed * 8
            if isinstance(key, tuple) and key[0] == cluster.id and added:
                limit = cluster.user_jobs if len(key) == 3 else quota.per_user
                if limit is not None:
                    assert total <= (limit if len(key) == 3 else limit * 8)


@given(snapshots())
@settings(max_examples=200, deadline=None)
def test_gangs_start_whole_on_distinct_nodes(snapshot):
    jobs = {w.job: w for w in snapshot.waiting}

    for start in plan(snapshot, NOW).assignments:
        asked = jobs[start.job].request
        assert len({node for node, _ in start.places}) == len(start.places) == asked.nodes
        for _, pairs in start.places:
            assert len({device for device, _ in pairs}) == len(pairs) == (asked.gpus or 1)
            assert {shares for _, shares in pairs} == {asked.shares if asked.gpus else asked.cpu_shares}


@given(snapshots(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_equal_pictures_give_equal_plans(snapshot, rng):
    shuffled = list(snapshot.waiting)
    rng.shuffle(shuffled)

    assert plan(snapshot, NOW) == plan(replace(snapshot, waiting=tuple(shuffled)), NOW)


@given(snapshots())
@settings(max_examples=200, deadline=None)
def test_every_job_either_starts_or_is_told_why_and_where(snapshot):
    result = plan(snapshot, NOW)

    started = {a.job for a in result.assignments}
    assert started | set(result.waits) == {w.job for w in snapshot.waiting}
    assert not started & set(result.waits)
    assert sorted(w.position for w in result.waits.values()) == list(range(1, len(result.waits) + 1))
    assert all(w.eta is None or w.eta >= NOW for w in result.waits.values())


@given(snapshots())
@settings(max_examples=200, deadline=None)
def test_no_device_idles_while_allowed_work_fits(snapshot):
    result = plan(snapshot, NOW)
    jobs = {w.job: w for w in snapshot.waiting}
    space, ledger = Space(snapshot.nodes, snapshot.devices), Ledger(snapshot, NOW)
    for run in snapshot.running:
        space.take(run.held)
    for start in result.assignments:
        space.take(pair for _, pairs in start.places for pair in pairs)
        ledger.add(jobs[start.job])

    for job, wait in result.waits.items():
        if wait.code != "reserved":
            fits = space.find(jobs[job].request, space.free) is not None
            assert not fits or ledger.refuse(jobs[job]) is not None


@given(snapshots())
@settings(max_examples=200, deadline=None)
def test_the_guard_is_first_in_first_out(snapshot):
    old = [w for w in queue_order(snapshot, NOW) if w.priority < 100 and NOW - w.queued_at >= GUARD_S]
    started = {a.job for a in plan(snapshot, NOW).assignments}

    assert old == sorted(old, key=lambda w: (w.queued_at, w.job))
    for place, earlier in enumerate(old):
        for later in old[place + 1 :]:
            same = (earlier.owner, earlier.cluster, earlier.request, earlier.runtime) == (
                later.owner,
                later.cluster,
                later.request,
                later.runtime,
            )
            assert not (same and later.job in started and earlier.job not in started)


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


def test_backfill_takes_a_hole_only_if_it_ends_in_time():
    busy = Running(-1, 9, 1, ((0, 8), (1, 8), (2, 8)), NOW + 2 * HOUR, 24)
    queue = [job(1, 4, age=300), job(2, 1, age=200, hours=3, owner=2), job(3, 1, age=100, hours=1, owner=3)]

    result = plan(lab(waiting=queue, running=[busy]), NOW)

    assert [a.job for a in result.assignments] == [3]
    assert result.waits[1].code == "no_cards"
    assert result.waits[1].args == {"asked": 4, "free": 0}
    assert result.waits[1].eta == NOW + 2 * HOUR
    assert result.waits[2].code == "reserved"
    assert result.waits[2].args == {"job": 1}


def test_long_work_may_use_cards_the_reservation_leaves_alone():
    busy = Running(-1, 9, 1, tuple((i, 8) for i in range(6)), NOW + 2 * HOUR, 48)
    queue = [job(1, 4, age=300), job(2, 1, age=200, owner=2), job(3, 2, age=100, owner=3)]

    result = plan(lab(cards=8, waiting=queue, running=[busy]), NOW)

    # 4 of 8 cards suffice for job 1 and they are free in two hours without cards 6 and 7
    assert {a.job for a in result.assignments} == {2}
    assert result.waits[3].code in {"no_cards", "reserved"}


def test_small_jobs_cannot_starve_a_large_one_on_the_quota():
    busy = Running(-1, 9, 1, ((0, 8), (1, 8)), NOW + HOUR, 16)
    queue = [job(1, 4, age=500), job(2, 1, age=400, owner=2), job(3, 1, age=300, owner=2, hours=0.5)]

    result = plan(lab(cards=8, waiting=queue, running=[busy], gpu_quota=4), NOW)

    assert [a.job for a in result.assignments] == [3]
    assert result.waits[1].code == "cluster_quota"
    assert result.waits[2].code == "reserved"


def test_urgent_then_guard_then_fair_share():
    queue = [
        job(1, age=60, owner=1),
        job(2, age=60, owner=2),
        job(3, age=7 * HOUR, owner=1),
        job(4, age=1, owner=1, priority=100),
        job(5, age=1, owner=2, priority=1),
    ]
    picture = replace(lab(cards=8, waiting=queue), usage={1: 50.0})

    assert [w.job for w in queue_order(picture, NOW)] == [4, 3, 5, 2, 1]


def test_a_batch_of_one_person_does_not_pass_a_neighbour():
    batch = [job(n, age=100 - n, owner=1) for n in range(1, 9)]
    neighbour = job(50, age=1, owner=2)

    order = [w.job for w in queue_order(lab(waiting=[*batch, neighbour]), NOW)]

    assert order.index(50) <= 1


def test_small_work_shares_a_card_and_whole_jobs_stay_in_one_group():
    quarters = [job(n, 1, age=10 - n, shares=2) for n in range(1, 6)]

    result = plan(lab(cards=8, waiting=quarters), NOW)
    pair = plan(lab(cards=8, waiting=[job(1, 3)], running=[Running(-1, 1, 1, ((0, 8),), None, 8)]), NOW)

    used = Counter(d for a in result.assignments for _, pairs in a.places for d, _ in pairs)
    assert sorted(used.values()) == [1, 4]
    assert {d for _, pairs in pair.assignments[0].places for d, _ in pairs} == {1, 2, 3}


def test_scattered_cards_are_named():
    devices = tuple(Device(n * 10 + i, n) for n in (1, 2) for i in range(2))
    busy = [Running(-n, 1, 1, ((n * 10, 8),), None, 8) for n in (1, 2)]
    picture = Snapshot((Node(1, "a"), Node(2, "b")), devices, (Cluster(1, "lab"),), tuple(busy), (job(1, 2),))

    wait = plan(picture, NOW).waits[1]

    assert (wait.code, wait.args) == ("scattered", {"asked": 2, "free": 2, "best": 1})


def test_a_request_no_machine_up_can_hold_blocks_nobody():
    queue = [job(1, 8, age=9 * HOUR), job(2, 4, owner=2)]

    result = plan(lab(waiting=queue), NOW)

    assert [a.job for a in result.assignments] == [2]
    assert (result.waits[1].code, result.waits[1].eta) == ("no_machine", None)


def test_what_can_never_fit_says_what_to_change():
    picture = lab(cards=4, gpu_quota=8)
    machines = (picture.nodes, picture.devices)
    small = Cluster(1, "lab", {"gpu": Quota(2)})

    never = [
        can_ever_fit(Request(gpus=3), *machines, small),
        can_ever_fit(Request(gpus=5), *machines, picture.clusters[0]),
        can_ever_fit(Request(nodes=2, gpus=2), *machines, picture.clusters[0]),
        can_ever_fit(Request(cpu_shares=80), *machines, picture.clusters[0]),
        can_ever_fit(Request(gpus=1, model="H999"), *machines, picture.clusters[0]),
    ]

    assert [n.code for n in never if n] == [
        "over_cluster_quota",
        "too_many_on_a_node",
        "too_many_nodes",
        "too_many_cpus",
        "no_such_card",
    ]
    assert can_ever_fit(Request(gpus=4), *machines, picture.clusters[0]) is None


def test_use_is_halved_every_seven_days():
    week = 7 * 24 * HOUR

    recent = decayed_hours([(NOW - HOUR, NOW, 2)], NOW)
    old = decayed_hours([(NOW - week - HOUR, NOW - week, 2)], NOW)

    assert abs(recent - 2) < 0.01
    assert abs(old - recent / 2) < 0.001
