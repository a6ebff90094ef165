"""What must hold for every plan, whatever the machines, the rules and the queue look like."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.long_form import examples
from tests.workers.drawn_snapshots import HOUR, NOW, snapshots, taken
from workers.planning.planner.fit import Space
from workers.planning.planner.limits import Ledger, borrowed
from workers.planning.planner.order import GUARD_S, queue_order
from workers.planning.planner.plan import Assignment, plan
from workers.planning.planner.policy import DEFAULT
from workers.planning.planner.snapshot import URGENT, Cluster, Device, Node, Request, Running, Snapshot, Waiting
from workers.planning.planner.windows import Openings


@given(snapshots())
@settings(max_examples=examples(70), deadline=None)
def test_planner_never_overbooks(snapshot):
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
@settings(max_examples=examples(70), deadline=None)
def test_planner_holds_the_limits_of_cluster_and_person(snapshot):
    jobs = {w.job: w for w in snapshot.waiting}
    before: Counter[object] = Counter()
    after: Counter[object] = Counter()
    for run in snapshot.running:
        group = f"counts as {run.counts_as}"
        kind, shares = run.counted
        before.update({(run.cluster, kind): shares, (run.cluster, run.owner, group): 1})
        before[run.cluster, run.owner, kind] += shares

    for start in plan(snapshot, NOW).assignments:
        job, request = jobs[start.job], jobs[start.job].request
        group = f"counts as {job.counts_as}"
        kind, shares = request.counted
        after[job.cluster, kind] += shares
        after[job.cluster, job.owner, kind] += shares
        after[job.cluster, job.owner, group] += 1

    clusters = {c.id: c for c in snapshot.clusters}
    for key, added in after.items():
        cluster = clusters[key[0]]
        quota = cluster.quota(key[-1])
        most = {2: None if quota.borrows else quota.guaranteed, 3: quota.per_user}[len(key)]
        limit = None if most is None else most * 8
        if key[-1].startswith("counts as "):
            limit = cluster.per_user.get(key[-1].removeprefix("counts as "))
        assert not added or limit is None or before[key] + added <= limit


@given(snapshots())
@settings(max_examples=examples(70), deadline=None)
def test_planner_starts_gangs_whole_on_distinct_open_nodes(snapshot):
    jobs = {w.job: w for w in snapshot.waiting}
    devices = {d.id: d for d in snapshot.devices}
    openings = Openings(snapshot, NOW)

    for start in plan(snapshot, NOW).assignments:
        job, asked = jobs[start.job], jobs[start.job].request
        nodes = {node for node, _ in start.places}
        assert len(nodes) == len(start.places) == asked.nodes
        assert not nodes & openings.closed_to(job.kind)
        for _, pairs in start.places:
            assert len({device for device, _ in pairs}) == len(pairs) == (asked.gpus or 1)
            assert {shares for _, shares in pairs} == {asked.shares if asked.gpus else asked.cpu_shares}
            assert {devices[device].kind for device, _ in pairs} == {asked.kind}
            groups = {devices[device].group for device, _ in pairs}
            assert asked.kind != "npu" or len(groups) == 1 or asked.gpus == 4  # a node of two rings of two, whole


@given(snapshots(), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_planner_gives_equal_plans_for_equal_snapshots(snapshot, rng):
    shuffled = list(snapshot.waiting)
    rng.shuffle(shuffled)

    assert plan(snapshot, NOW) == plan(replace(snapshot, waiting=tuple(shuffled)), NOW)


@given(snapshots())
@settings(max_examples=examples(60), deadline=None)
def test_planner_starts_every_job_or_says_why_and_where(snapshot):
    result = plan(snapshot, NOW)

    started = {a.job for a in result.assignments}
    assert started | set(result.waits) == {w.job for w in snapshot.waiting}
    assert not started & set(result.waits)
    assert sorted(w.position for w in result.waits.values()) == list(range(1, len(result.waits) + 1))
    assert all(w.eta is None or w.eta >= NOW for w in result.waits.values())


@given(snapshots())
@settings(max_examples=examples(70), deadline=None)
def test_planner_lets_no_device_idle_while_allowed_work_fits(snapshot):
    result = plan(snapshot, NOW)
    jobs = {w.job: w for w in snapshot.waiting}
    space = Space(snapshot.nodes, snapshot.devices, Openings(snapshot, NOW).closed_to)
    ledger = Ledger(snapshot, NOW)
    for run in snapshot.running:
        space.occupy(run.held)
    for start in result.assignments:
        space.occupy(pair for _, pairs in start.places for pair in pairs)
        ledger.add(jobs[start.job])
    room_is_made = any(wait.code == "making_room" for wait in result.waits.values())

    for job, wait in result.waits.items():
        if wait.code != "reserved" and not room_is_made:  # cards are kept for whom room is made
            fits = space.find(space.shape(jobs[job].request, jobs[job].kind), space.free) is not None
            assert not fits or ledger.judge(jobs[job]).refused is not None


@given(snapshots())
@settings(max_examples=examples(60), deadline=None)
def test_planner_guard_is_first_in_first_out(snapshot):
    promised = {run.for_job for run in snapshot.running if run.preempting}
    old = [
        w
        for w in queue_order(snapshot, NOW)
        if w.priority < URGENT and NOW - w.queued_at >= GUARD_S and w.job not in promised
    ]
    started = {a.job for a in plan(snapshot, NOW).assignments}

    assert old == sorted(old, key=lambda w: (w.queued_at, w.job))
    for place, earlier in enumerate(old):
        for later in old[place + 1 :]:
            same = (earlier.owner, earlier.cluster, earlier.request, earlier.runtime, earlier.kind) == (
                later.owner, later.cluster, later.request, later.runtime, later.kind,
            )  # fmt: skip
            assert not (same and later.job in started and earlier.job not in started)


@given(snapshots())
@settings(max_examples=examples(100), deadline=None)
def test_planner_preempts_nobody_upward_early_twice_or_in_vain(snapshot):
    jobs = {w.job: w for w in snapshot.waiting}
    runs = {r.job: r for r in snapshot.running}
    lent = borrowed(snapshot.clusters, snapshot.running)
    result = plan(snapshot, NOW)

    assert len({p.job for p in result.preemptions}) == len(result.preemptions)
    for preemption in result.preemptions:
        victim, job = runs[preemption.job], jobs[preemption.for_job]
        assert victim.preemptible or victim.job in lent
        assert not victim.preempting
        if preemption.why != "guarantee":
            assert victim.priority < URGENT
            assert NOW - victim.started_at >= DEFAULT.protected_s(victim.times_preempted) >= DEFAULT.min_run_s
        assert result.waits[job.job].code == "making_room"
        if preemption.why == "urgent":
            assert job.priority >= URGENT
        elif preemption.why == "guarantee":
            assert victim.job in lent
            assert victim.cluster != job.cluster
        else:
            assert victim.priority <= job.priority
            assert preemption.why == "window" or victim.queued_at > job.queued_at


@given(st.integers(2, 5), st.lists(st.integers(1, 2), min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=examples(40), deadline=None)
def test_planner_lets_equally_willing_work_make_room_in_turn(cards, waves, rng):
    """Again and again something urgent comes; nobody goes a second time before everybody went once, and so on."""
    node, devices = Node(0, "node"), tuple(Device(card, 0) for card in range(cards))
    running = [
        Running(-job, 0, 0, ((job, 8),), None, 8, preemptible=True, started_at=NOW - rng.uniform(2, 9) * HOUR)
        for job in range(cards)
    ]
    for wave, urgent in enumerate(waves):
        now = NOW + 5 * wave * HOUR
        asks = tuple(Waiting(job, 1, 0, Request(gpus=1), now, URGENT) for job in range(1, urgent + 1))
        decided = plan(Snapshot((node,), devices, (Cluster(0, "lab"),), tuple(running), asks), now)
        gone = {preemption.job for preemption in decided.preemptions}
        assert len(gone) == urgent
        running = [
            replace(r, times_preempted=r.times_preempted + 1, started_at=now) if r.job in gone else r for r in running
        ]

        assert max(r.times_preempted for r in running) - min(r.times_preempted for r in running) <= 1


@given(snapshots())
@settings(max_examples=examples(80), deadline=None)
def test_planner_requests_room_only_once(snapshot):
    first = plan(snapshot, NOW)
    asked = {p.job: p.for_job for p in first.preemptions}
    running = [replace(r, preempting=True, for_job=asked[r.job]) if r.job in asked else r for r in snapshot.running]
    starts = {a.job: a for a in first.assignments}
    running += [as_running(w, starts[w.job], NOW) for w in snapshot.waiting if w.job in starts]
    left = tuple(
        replace(w, promised=first.waits[w.job].code == "making_room") for w in snapshot.waiting if w.job not in starts
    )

    second = plan(replace(snapshot, running=tuple(running), waiting=left), NOW + 1)

    assert not {p.for_job for p in second.preemptions} & set(asked.values())
    assert all(second.waits[job].code == "making_room" for job in asked.values())


def as_running(job: Waiting, start: Assignment, now: float) -> Running:
    held = tuple(pair for _, pairs in start.places for pair in pairs)
    return Running(
        job.job, job.owner, job.cluster, held, now + (job.runtime or HOUR), job.request.card_shares, job.preemptible,
        job.kind, job.request.device_kind, job.priority, now, queued_at=job.queued_at,
    )  # fmt: skip


def ended(snapshot: Snapshot, run: Running) -> Snapshot:
    return replace(snapshot, running=tuple(r for r in snapshot.running if r.job != run.job))


@given(snapshots())
@settings(max_examples=examples(40), deadline=None)
def test_planner_runs_everything_that_can_run_and_leaves_nothing(snapshot):
    """A little event loop: what is asked to leave queues again, what ends is gone."""
    snapshot = replace(snapshot, groups=(), running=tuple(replace(r, preempting=False) for r in snapshot.running))
    about = {w.job: w for w in snapshot.waiting}
    now, moves = NOW, 0
    while True:
        decided = plan(snapshot, now)
        moves += 1
        assert moves < 200, "it goes round in circles"
        for preemption in decided.preemptions:
            run = next(r for r in snapshot.running if r.job == preemption.job)
            snapshot = ended(snapshot, run)
            if run.job in about:
                again = replace(about[run.job], promised=False)
                snapshot = replace(snapshot, waiting=(*snapshot.waiting, again))
        for start in decided.assignments:
            job = about[start.job]
            run = as_running(job, start, now)
            left = tuple(w for w in snapshot.waiting if w.job != job.job)
            snapshot = replace(snapshot, running=(*snapshot.running, run), waiting=left)
        if decided.preemptions or decided.assignments:
            continue
        if not snapshot.running:
            break
        soonest = min(snapshot.running, key=lambda r: (r.ends_at or now, r.job))
        now = max(now, soonest.ends_at or now)
        snapshot = ended(snapshot, soonest)

    space = Space(snapshot.nodes, snapshot.devices)
    assert space.free == [d.capacity for d in space.devices]
    for wait in plan(snapshot, now).waits.values():  # only what the machines or a limit can never hold is left
        limits = {"cluster_quota", "cluster_cores", "guaranteed_cards", "guaranteed_cores"}
        limits |= {"user_cards", "user_cores", "user_jobs", "user_environments"}
        assert wait.code in limits | {"no_machine"}
