"""Why a queued job may not start, whatever is free; one reason each."""

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.core import held_back
from workers.core.models import Dependency, JobArray
from workers.planning import planner_input
from workers.resources.monitoring import snapshot_reader
from workers.scheduling import placing
from workers.scheduling.loop import Scheduler

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.usefixtures("kind")]


def codes():
    return {job: held.code for job, held in held_back.reasons(now()).items()}


def test_held_back_names_a_reason_for_each_job_that_may_not_start(alice, cluster):
    free = work.job(alice, cluster)
    paused = work.job(alice, cluster, desired="pause")
    later = work.job(alice, cluster, not_before=now() + timedelta(minutes=1))
    behind = work.job(alice, cluster)
    Dependency.objects.create(job=behind, on=free)

    assert codes() == {paused.pk: "paused", later.pk: "backoff", behind.pk: "after_success"}


def test_held_back_jobs_are_no_input_of_the_planner_and_no_cause_of_an_alarm(alice, cluster):
    free, paused = work.job(alice, cluster), work.job(alice, cluster, desired="pause")
    Dependency.objects.create(job=work.job(alice, cluster), on=paused)

    snapshot = planner_input.read(now(), ({}, {}), 60.0)
    queues = snapshot_reader._queues(now())

    assert [one.job for one in snapshot.waiting] == [free.pk]
    assert [one.waiting for one in queues] == [1]


@pytest.mark.parametrize(
    ("needs", "state", "held"),
    [
        ("success", "running", True),
        ("success", "failed", True),
        ("success", "succeeded", False),
        ("success", "finished_early", False),
        ("end", "running", True),
        ("end", "failed", False),
        ("end", "lost", False),
    ],
)
def test_held_back_by_another_job_until_it_came_so_far(alice, cluster, needs, state, held):
    first, behind = work.job(alice, cluster, state=state), work.job(alice, cluster)
    Dependency.objects.create(job=behind, on=first, needs=needs)

    assert (behind.pk in codes()) == held


def test_held_back_by_many_jobs_counts_them_and_names_the_first(alice, cluster):
    first, second, behind = (work.job(alice, cluster) for _ in range(3))
    for one in (first, second):
        Dependency.objects.create(job=behind, on=one)

    held = held_back.reasons(now())[behind.pk]

    assert (held.code, held.args) == ("after_many", {"job": first.pk, "count": 2})


def test_held_back_jobs_of_an_array_leave_the_lowest_indices_to_start(alice, cluster):
    array = JobArray.objects.create(name="a", owner=alice, cluster=cluster, indices="0-5%3", size=6, at_once=3)
    states = ["running", "queued", "queued", "queued", "queued", "succeeded"]
    jobs = [work.job(alice, cluster, state=state, array=array, array_index=n) for n, state in enumerate(states)]
    jobs[1].__class__.objects.filter(pk=jobs[1].pk).update(desired="pause")

    assert codes() == {jobs[1].pk: "paused", jobs[4].pk: "array_full"}


def test_held_back_job_says_why_on_its_row(alice, cluster):
    work.node(cores=8)
    first = work.job(alice, cluster, desired="pause")
    behind = work.job(alice, cluster)
    Dependency.objects.create(job=behind, on=first)

    Scheduler().tick()

    behind.refresh_from_db()
    assert behind.wait_sentence == f"Starts when job {first.pk} has completed."
    assert behind.position is None


def test_held_back_costs_the_same_queries_for_many_jobs(alice, cluster, django_assert_num_queries):
    array = JobArray.objects.create(name="a", owner=alice, cluster=cluster, indices="0-9%3", size=10, at_once=3)
    jobs = [work.job(alice, cluster, array=array, array_index=n) for n in range(10)]
    for one in jobs[1:]:
        Dependency.objects.create(job=one, on=jobs[0])

    with django_assert_num_queries(7):
        held_back.reasons(now())


def test_held_back_job_that_is_queued_while_the_planner_reads_is_none_of_its_input(alice, cluster, monkeypatch):
    first, real = work.job(alice, cluster), held_back.reasons

    def late(moment):
        found = real(moment)
        Dependency.objects.create(job=work.job(alice, cluster), on=first)
        return found

    monkeypatch.setattr(held_back, "reasons", late)

    assert [one.job for one in planner_input.read(now(), ({}, {}), 60.0).waiting] == [first.pk]


def test_held_back_after_the_plan_was_made_is_not_placed(alice, cluster):
    node, first, behind = work.node(), work.job(alice, cluster), work.job(alice, cluster)
    Dependency.objects.create(job=behind, on=first)

    with pytest.raises(placing.Late, match="for other jobs"):
        placing.place(behind.pk, [(node.pk, [(node.devices.get(kind="cpu").pk, 1)])])
