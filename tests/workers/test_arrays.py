"""Arrays of jobs: how indices are written, how many run at a time, their page and their stop."""

import pytest

from aiplatform.lib.errors import Invalid
from tests.cases import case_table
from tests.factories import work
from workers.core.models import Job, JobArray
from workers.execution import tickets
from workers.jobs import actions, arrays, submission, transitions
from workers.jobs.following import Following
from workers.scheduling.loop import Scheduler

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.usefixtures("kind")]


@pytest.fixture
def put(alice, cluster):
    work.node(cores=16)

    def one(text="0-5%2"):
        jobs = submission.submit_array(
            owner=alice, cluster=cluster, kind="command", name="fold", indices=arrays.parse(text)
        )
        return JobArray.objects.get(), jobs

    return one


@pytest.mark.parametrize(
    ("text", "numbers", "at_once"),
    [
        ("0-3", (0, 1, 2, 3), None),
        ("0-9:4 % 2", (0, 4, 8), 2),
        ("7, 1,3", (1, 3, 7), None),
        ("5", (5,), None),
        ("1-2,9-10%1", (1, 2, 9, 10), 1),
    ],
)
def test_array_indices_are_read_as_people_write_them(text, numbers, at_once):
    read = arrays.parse(text)

    assert (read.numbers, read.at_once) == (numbers, at_once)


@case_table(
    "text",
    [
        "",
        "a",
        "3-1",
        "0-9%0",
        "0-9%",
        "1,,2",
        "1-2-3",
        "0-1000",
        "1,1",
        "0-9:0",
        "-1",
        "0-9999999",
        "1" * 300,
        "0-9%8%8",
    ],
)
def test_array_indices_that_mean_nothing_are_refused(text):
    with pytest.raises(Invalid) as refused:
        arrays.parse(text)

    assert refused.value.blamed == "array"


def test_array_runs_as_many_jobs_at_a_time_as_it_may(put):
    array, jobs = put("0-5%2")

    Scheduler().tick()

    assert arrays.states(array) == {"assigned": 2, "queued": 4}
    assigned = Job.objects.filter(state="assigned").order_by("array_index")
    assert list(assigned.values_list("array_index", flat=True)) == [0, 1]
    assert Job.objects.get(pk=jobs[2].pk).wait_sentence == "The maximum number of jobs of the array is running: 2."


def test_array_job_is_told_its_index(put):
    array, jobs = put("3-4")

    told = tickets.array_environment(Job.objects.get(pk=jobs[1].pk))

    assert told == {"AIP_ARRAY_ID": str(array.pk), "AIP_ARRAY_INDEX": "4", "AIP_ARRAY_SIZE": "2"}
    assert [job.name for job in jobs] == ["fold_3", "fold_4"]


def test_array_page_shows_its_jobs_and_stops_them_all(put, as_alice, as_bob, as_olga, django_assert_max_num_queries):
    array, _jobs = put("0-29%2")
    Scheduler().tick()

    with django_assert_max_num_queries(25):
        page = as_alice.get(f"/arrays/{array.pk}/").content.decode()
    foreign = as_bob.get(f"/arrays/{array.pk}/").status_code, as_bob.post(f"/arrays/{array.pk}/stop/").status_code
    as_alice.post(f"/arrays/{array.pk}/stop/")

    assert "fold_0" in page
    assert "at most 2 at a time" in page
    assert "Stop all" in page
    assert foreign == (404, 404)
    assert arrays.states(array)["stopped"] == 28
    assert Job.objects.filter(array=array, desired="stop").count() == 2
    assert as_olga.get(f"/arrays/{array.pk}/").status_code == 200


def test_array_in_the_api(put, api):
    array, _jobs = put("0-3")

    row = api.get(f"/api/v1/arrays/{array.pk}/").json()
    jobs = api.get(f"/api/v1/jobs/?array={array.pk}").json()["results"]
    stopped = api.post(f"/api/v1/arrays/{array.pk}/stop/")

    assert (row["size"], row["states"], row["url"]) == (4, {"queued": 4}, f"/arrays/{array.pk}/")
    assert sorted(job["array_index"] for job in jobs) == [0, 1, 2, 3]
    assert (stopped.status_code, stopped.json()) == (202, {"requested": 4})


def test_array_stop_looks_again_at_a_job_that_was_moved_meanwhile(put, alice, monkeypatch):
    array, jobs = put("0-1")
    real, missed = actions.stop, []

    def stale_once(job, **about):
        if job.pk == jobs[0].pk and not missed:
            missed.append(job.pk)
            raise transitions.StaleReport("moved")
        return real(job, **about)

    monkeypatch.setattr(actions, "stop", stale_once)

    assert arrays.stop(array, by=alice) == 2
    assert missed == [jobs[0].pk]
    assert arrays.states(array) == {"stopped": 2}


def test_array_that_follows_others_too_often_is_refused(alice, cluster, monkeypatch):
    monkeypatch.setattr(submission, "MAX_PAIRS", 3)
    others = [work.job(alice, cluster).pk for _ in range(2)]

    with pytest.raises(Invalid, match="The jobs of this array would have more than 3 dependencies in") as refused:
        submission.submit_array(
            owner=alice, cluster=cluster, kind="command", name="fold", indices=arrays.parse("0-1"),
            following=Following(after=others),
        )  # fmt: skip

    assert refused.value.blamed == "array"
    assert not JobArray.objects.exists()
