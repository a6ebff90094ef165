"""The scheduler's passes against real rows; `tick` is called by hand."""

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.core import leases
from workers.core.models import Attempt, Job, Lease, Node
from workers.core.states import Event
from workers.jobs import submission, transitions
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import quotas
from workers.scheduling import liveness
from workers.scheduling.loop import IDLE_POLL_S, LEASE, POLL_S, Scheduler

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.usefixtures("kind")]


@pytest.fixture
def node(db):
    return work.node(gpus=4)


@pytest.fixture
def put(alice, cluster, node):
    def one(owner=alice, **asked):
        asked.setdefault("gpus_per_node", 1)
        return submission.submit(owner=owner, cluster=cluster, kind="command", name="job", **asked)

    return one


def states(*all_jobs):
    return [Job.objects.get(pk=job.pk).state for job in all_jobs]


def run_all(*all_jobs):
    for job in all_jobs:
        transitions.move(job.pk, Event.STARTED, attempt=1)


def test_scheduler_starts_jobs_and_tells_the_rest_why(put):
    first, second, third = put(gpus_per_node=3), put(gpus_per_node=2), put(gpus_per_node=1)

    Scheduler().tick()

    assert states(first, second, third) == ["assigned", "queued", "assigned"]
    second.refresh_from_db()
    assert (second.wait_code, second.wait_args, second.position) == ("no_cards", {"asked": 2, "free": 0}, 1)
    assert second.wait_sentence == "Waits for GPUs: 2 needed, 0 free."
    assert second.eta is None  # nobody knows when the others end
    assert Attempt.objects.get(job=first).allocations.count() == 3


def test_scheduler_lets_eight_jobs_take_turns_on_four_cards(put):
    eight = [put() for _ in range(8)]
    scheduler = Scheduler()
    scheduler.tick()
    first = states(*eight).count("assigned")
    run_all(*(job for job in eight if states(job) == ["assigned"]))
    for job in Job.objects.filter(state="running"):
        transitions.move(job.pk, Event.EXITED_OK, attempt=1)
    scheduler.tick()

    assert first == 4
    assert states(*eight).count("succeeded") == 4
    assert states(*eight).count("assigned") == 4


def test_scheduler_lets_urgent_work_pass_the_queue(put, olga):
    put(gpus_per_node=4)
    Scheduler().tick()
    normal, urgent = put(gpus_per_node=4), put(owner=olga, gpus_per_node=4, priority=Job.URGENT)
    scheduler = Scheduler()
    leases.release(LEASE, Lease.objects.get().holder)
    scheduler.tick()

    normal.refresh_from_db()
    urgent.refresh_from_db()
    assert (urgent.position, normal.position) == (1, 2)


def test_scheduler_holds_the_limits_of_the_cluster(put, cluster, bob):
    quotas.set_quotas(cluster, {"gpu": Quota(3, per_user=2)})
    mine = [put() for _ in range(3)]
    theirs = [put(owner=bob) for _ in range(2)]

    Scheduler().tick()

    assert states(*mine).count("assigned") + states(*theirs).count("assigned") == 3
    assert states(*mine).count("assigned") <= 2
    codes = set(Job.objects.filter(state="queued").values_list("wait_code", flat=True))
    assert codes <= {"cluster_quota", "user_cards"}


def test_scheduler_acts_alone_where_two_run(put):
    one, two = Scheduler("one"), Scheduler("two")
    one.tick()
    job = put()

    assert two.tick() is None
    assert states(job) == ["queued"]
    assert one.tick() is not None
    assert states(job) == ["assigned"]


def test_scheduler_follows_one_that_was_killed_on_this_machine_at_once(put):
    killed, follows = Scheduler(), Scheduler()
    killed.tick()
    host, machine, pid, _begin, word = killed.holder.split(":")
    Lease.objects.filter(name=LEASE).update(holder=f"{host}:{machine}:{pid}:1:{word}")  # the number has a new owner
    job = put()

    follows.tick()

    assert states(job) == ["assigned"]


def test_scheduler_that_was_replaced_changes_nothing(put):
    old, new = Scheduler("old"), Scheduler("new")
    old.tick()
    Lease.objects.update(renewed_at=now() - timedelta(minutes=1))
    new.tick()
    job = put()

    old.tick()  # believes in its lease for a while, but its writes are fenced by the epoch
    assert states(job) == ["queued"]
    assert old.epoch is None
    new.tick()
    assert states(job) == ["assigned"]


def test_scheduler_makes_no_pass_when_nothing_is_new(put):
    scheduler = Scheduler(clock=lambda: 100.0)
    put()

    assert scheduler.tick() is not None
    scheduler.tick()
    assert scheduler.tick() is None


def test_scheduler_gives_a_silent_node_no_work_and_up_after_ten_minutes(put, node):
    running = put()
    scheduler = Scheduler()
    scheduler.tick()
    run_all(running)
    seen = []
    Lease.objects.update(watched_since=now() - timedelta(hours=1))
    for silence in (20, 70, 601):
        Node.objects.update(heartbeat_at=now() - timedelta(seconds=silence))
        waiting = put()
        scheduler.tick()
        seen.append((Node.objects.get().state, states(waiting)[0]))

    assert seen == [("suspect", "queued"), ("unreachable", "queued"), ("lost", "queued")]
    running.refresh_from_db()
    attempt = running.attempts.get()
    assert (running.state, attempt.state, attempt.reason) == ("queued", "lost", "node_lost")
    assert set(node.devices.values_list("used", flat=True)) == {0}


@pytest.mark.parametrize("desired", ["pause", "run"])
def test_scheduler_queues_a_paused_job_of_a_lost_machine_as_paused(put, node, desired):
    """Unless its owner asked it to go on meanwhile."""
    job = put()
    scheduler = Scheduler()
    scheduler.tick()
    run_all(job)
    transitions.move(job.pk, Event.PAUSED)
    Job.objects.filter(pk=job.pk).update(desired=desired)
    Lease.objects.update(watched_since=now() - timedelta(hours=1))
    Node.objects.update(heartbeat_at=now() - timedelta(seconds=601))

    scheduler.tick()

    job.refresh_from_db()
    assert (job.state, job.desired) == ("queued", desired)


@pytest.mark.parametrize(("evicted_s", "lost_s"), [(3600, 600), (25, 24)])
def test_scheduler_gives_nobody_up_for_a_silence_it_did_not_listen_to(put, node, evicted_s, lost_s, monkeypatch):
    """Scheduler or database were away for longer than a node may be silent: nodes first get the time to be heard."""
    monkeypatch.setattr(liveness, "LOST", timedelta(seconds=lost_s))
    monkeypatch.setattr(liveness, "UNREACHABLE", timedelta(seconds=16))
    monkeypatch.setattr(leases, "GAP", leases.longest_gap(lost_s))
    running = put()
    scheduler = Scheduler()
    scheduler.tick()
    run_all(running)
    then = now() - timedelta(seconds=evicted_s)
    Node.objects.update(heartbeat_at=then)
    Lease.objects.update(renewed_at=then, watched_since=then - timedelta(hours=1), holder="")

    Scheduler().tick()

    assert (Node.objects.get().state, states(running)) == ("unreachable", ["running"])


def test_scheduler_uses_a_node_again_once_it_is_heard(put, node):
    scheduler = Scheduler()
    Node.objects.update(heartbeat_at=now() - timedelta(seconds=100))
    scheduler.tick()
    Node.objects.update(heartbeat_at=now())
    job = put()

    scheduler.tick()

    assert (Node.objects.get().state, states(job)) == ("live", ["assigned"])


def test_scheduler_requests_a_job_over_its_time_to_stop(put, cluster):
    own, clusters, free = put(max_runtime=timedelta(hours=1)), put(), put()
    scheduler = Scheduler()
    scheduler.tick()
    run_all(own, clusters, free)
    Attempt.objects.filter(job=own).update(started_at=now() - timedelta(minutes=61))
    scheduler.tick()
    assert Job.objects.get(pk=own.pk).desired == "run"  # its supervisor gives it a minute to save
    Attempt.objects.filter(job=own).update(started_at=now() - timedelta(minutes=63))
    Attempt.objects.filter(job=clusters).update(started_at=now() - timedelta(hours=3))
    cluster.max_runtime = timedelta(hours=2)
    cluster.save()

    scheduler.tick()
    scheduler.tick()

    wishes = dict(Job.objects.values_list("pk", "desired"))
    assert (wishes[own.pk], wishes[clusters.pk], wishes[free.pk]) == ("stop", "stop", "run")
    assert Job.objects.get(pk=own.pk).reason == "max_runtime"
    assert own.events.filter(event="stop_requested").count() == 1


def test_scheduler_counts_paused_time_against_no_limit(put):
    job = put(max_runtime=timedelta(hours=1))
    scheduler = Scheduler()
    scheduler.tick()
    run_all(job)
    transitions.move(job.pk, Event.PAUSED, attempt=1)
    Attempt.objects.filter(job=job).update(started_at=now() - timedelta(minutes=90))
    job.events.filter(event="paused").update(at=now() - timedelta(minutes=80))

    scheduler.tick()

    assert Job.objects.get(pk=job.pk).desired == "run"


def test_scheduler_leaves_work_alone_that_pauses_before_a_restart(put):
    job = put()
    Job.objects.filter(pk=job.pk).update(not_before=now() + timedelta(minutes=1))

    Scheduler().tick()

    job.refresh_from_db()
    assert (job.state, job.wait_code) == ("queued", "backoff")


def test_scheduler_shares_the_cores_among_cpu_jobs(alice, cluster):
    work.node(cores=2)  # four slots
    five = [submission.submit(owner=alice, cluster=cluster, kind="command", name="c", cpus=1.0) for _ in range(5)]

    Scheduler().tick()

    assert states(*five).count("assigned") == 4


def test_scheduler_gives_cards_freed_by_preemption_to_their_claimant(put, olga):
    willing = put(gpus_per_node=4, preemptible=True)
    scheduler = Scheduler()
    scheduler.tick()
    run_all(willing)
    Attempt.objects.update(started_at=now() - timedelta(minutes=11))
    urgent, other = put(owner=olga, gpus_per_node=4, priority=Job.URGENT), put(gpus_per_node=1)

    scheduler.tick()
    asked = Job.objects.get(pk=willing.pk)
    told = Job.objects.get(pk=urgent.pk)
    transitions.move(willing.pk, Event.RELEASE_REQUESTED, attempt=1)
    scheduler.tick()
    transitions.move(willing.pk, Event.SUSPENDED, attempt=1)
    scheduler.tick()

    assert (asked.desired, asked.makes_room_for) == ("release", urgent.pk)
    assert told.wait_code == "making_room"
    assert states(willing, urgent, other) == ["queued", "assigned", "queued"]


def test_scheduler_plans_seldom_while_no_job_waits(put):
    moment = [0.0]
    scheduler, job = Scheduler(clock=lambda: moment[0]), put()
    passes = []
    for at_s in (0, 6, 29, 36):
        moment[0] = at_s
        passes.append(scheduler.tick() is not None)
    later, moment[0] = put(), 37.0
    scheduler.tick()

    assert passes == [True, False, False, True]
    assert states(job, later) == ["assigned", "assigned"]


def test_scheduler_plans_again_after_a_while_as_long_as_a_job_waits(put):
    moment = [0.0]
    scheduler = Scheduler(clock=lambda: moment[0])
    put(gpus_per_node=4)
    put(gpus_per_node=4)
    passes = []
    for at_s in (0, 1, 2, 7):
        moment[0] = at_s
        passes.append(scheduler.tick() is not None)

    assert passes == [True, True, False, True]  # the second one sees what the first one wrote


def test_scheduler_waits_for_its_wake_up_longer_while_no_job_waits(put, monkeypatch):
    waited = []
    monkeypatch.setattr(
        "workers.scheduling.loop.scheduler_wakeup.wait", lambda seconds, **_more: waited.append(seconds)
    )
    scheduler = Scheduler()
    put(gpus_per_node=4)
    scheduler.run(lambda: len(waited) >= 2)
    put(gpus_per_node=4)
    scheduler.run(lambda: len(waited) >= 4)

    assert waited == [POLL_S, IDLE_POLL_S, POLL_S, POLL_S]
