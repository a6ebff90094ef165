"""Waiting jobs that belong to one machine, because something of theirs lies on its disk."""

from dataclasses import replace

import pytest
from django.utils.timezone import now
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import work
from tests.long_form import examples
from tests.workers.drawn_snapshots import NOW as DRAWN_NOW
from tests.workers.drawn_snapshots import snapshots
from tests.workers.planner_cases import NOW, ask, picture, run
from workers.core import held_back, pins
from workers.core.models import Job, Node
from workers.planning import planner_input
from workers.planning.planner.plan import plan
from workers.scheduling.loop import Scheduler


def pinned(job, node, **more):
    asked = ask(job, **more)
    return replace(asked, request=replace(asked.request, node=node))


def where(decided):
    return {one.job: [node for node, _devices in one.places] for one in decided.assignments}


def test_pinned_job_starts_on_its_machine_though_another_is_tighter():
    full = [run(7, 101, 102), run(8, 201)]

    decided = plan(picture(full, [pinned(1, 2), ask(2)], nodes=2, cards=4), NOW)

    assert where(decided) == {1: [2], 2: [1]}


def test_pinned_job_waits_for_its_machine_while_another_is_free():
    full = [run(7, 100, 101, 102, 103, preemptible=False)]

    wait = plan(picture(full, [pinned(1, 1)], nodes=2), NOW).waits[1]

    assert (wait.code, wait.args) == ("machine_full", {"node": "node1"})
    assert wait.eta == NOW + 9 * 3600  # when its own machine is free, not when any is


def test_pinned_job_keeps_nothing_of_other_machines_for_itself():
    full = [run(7, 100, 101, 102, 103, preemptible=False)]
    waiting = [pinned(1, 1, gpus=4, age=3 * 3600.0), ask(2, gpus=4)]

    assert where(plan(picture(full, waiting, nodes=2), NOW)) == {2: [2]}


def test_pinned_job_that_is_larger_than_its_machine_says_so():
    wait = plan(picture([], [pinned(1, 1, gpus=8)], nodes=1, cards=4), NOW).waits[1]

    assert (wait.code, wait.args) == ("machine_too_small", {"node": "node1"})


def test_pinned_job_on_several_machines_takes_its_own_among_them():
    decided = plan(picture([run(7, 300, 301)], [pinned(1, 2, gpus=1, nodes=2)], nodes=3), NOW)

    assert 2 in where(decided)[1]
    assert len(set(where(decided)[1])) == 2


def test_urgent_pinned_job_makes_room_on_its_machine_alone():
    full = [run(7, 100, 101, 102, 103), run(8, 200, 201, 202, 203, hours=1.0)]

    decided = plan(picture(full, [pinned(1, 1, priority=100)], nodes=2), NOW)

    assert [(one.job, one.for_job) for one in decided.preemptions] == [(7, 1)]


@given(snapshots(), st.integers(0, 3))
@settings(max_examples=examples(70), deadline=None)
def test_planner_starts_pinned_jobs_nowhere_else(snapshot, home):
    own = {job.job for job in snapshot.waiting[::2] if any(node.id == home for node in snapshot.nodes)}
    nodes = tuple(replace(node, id=node.id + 1) for node in snapshot.nodes)  # 0 is no machine of a request
    devices = tuple(replace(device, node=device.node + 1) for device in snapshot.devices)
    waiting = tuple(
        replace(job, request=replace(job.request, node=home + 1)) if job.job in own else job for job in snapshot.waiting
    )
    groups = tuple(replace(group, nodes=frozenset({1})) for group in snapshot.groups)

    decided = plan(replace(snapshot, nodes=nodes, devices=devices, waiting=waiting, groups=groups), DRAWN_NOW)

    for start in decided.assignments:
        assert start.job not in own or home + 1 in {node for node, _ in start.places}
    assert {a.job for a in decided.assignments} | set(decided.waits) == {job.job for job in waiting}


@pytest.fixture
def lies_on():
    """Says on which machine what a job keeps lies."""
    told: dict[int, str] = {}

    def machines(jobs):
        return {pk: told[pk] for pk in jobs.values_list("pk", flat=True) if pk in told}

    with pins.SOURCES.temporarily(pins.Source("test", machines, list), alone=True):
        yield told


@pytest.mark.django_db
@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("draining", "machine_drained"),
        ("suspect", "machine_silent"),
        ("unreachable", "machine_silent"),
        ("lost", "machine_silent"),
        ("removed", "machine_removed"),
    ],
)
def test_job_whose_machine_takes_no_work_waits_and_says_what_to_do(alice, cluster, lies_on, state, code):
    work.node("node1")
    work.node("far", state=state, drain=state == "draining")
    job = work.job(alice, cluster)
    lies_on[job.pk] = "far"
    if state in ("suspect", "unreachable", "lost"):  # else judged live again by its fresh heartbeat
        Node.objects.filter(name="far").update(heartbeat_at=now() - planner_input.timedelta(hours=1))

    Scheduler().tick()

    job.refresh_from_db()
    assert (job.state, job.wait_code) == ("queued", code)
    assert "far" in job.wait_sentence
    assert "saved image" in job.wait_sentence


@pytest.mark.django_db
@pytest.mark.usefixtures("kind")
def test_job_whose_machine_nobody_knows_any_more_waits(alice, cluster, lies_on):
    job = work.job(alice, cluster)
    lies_on[job.pk] = "gone"

    assert held_back.reasons(now())[job.pk] == held_back.Held("machine_removed", {"node": "gone"})


@pytest.mark.django_db
@pytest.mark.usefixtures("kind")
def test_job_starts_on_its_machine_once_it_is_back(alice, cluster, lies_on):
    work.node("node1")
    far = work.node("far", state="draining", drain=True)
    job = work.job(alice, cluster)
    lies_on[job.pk] = "far"
    scheduler = Scheduler()
    scheduler.tick()
    Node.objects.filter(pk=far.pk).update(state="live", drain=False)

    scheduler.tick()

    assert Job.objects.get(pk=job.pk).attempts.get().allocations.get().node == far
