"""Who holds the devices that a queued job waits for, and when it starts as far as that is known."""

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.jobs import holders
from workers.jobs.output import files
from workers.jobs.output.files import Output

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(db):
    return work.node("node1", gpus=2, simulated=True)


@pytest.fixture
def cards(node):
    return list(node.devices.filter(kind="gpu").order_by("index"))


@pytest.fixture
def waiting(alice, cluster):
    args = {"asked": 2, "free": 0}
    return work.job(alice, cluster, name="wish", gpus_per_node=2, wait_code="no_cards", wait_args=args, position=1)


def holding(owner, cluster, card, name, **columns):
    job = work.job(owner, cluster, name=name, state="running", gpus_per_node=1, **columns)
    work.hold(job, card)
    return job


def test_holders_are_named_as_far_as_the_reader_may_see_them(as_alice, alice, bob, cluster, cards, waiting):
    own = holding(alice, cluster, cards[0], "own run")
    holding(bob, cluster, cards[1], "secret run", max_runtime=timedelta(hours=1))

    found = holders.holders_of(waiting, alice, now())
    page = as_alice.get(f"/jobs/{waiting.pk}/").content.decode()

    assert [(one.job, one.amount, one.has_end) for one in found.named] == [(own, "1", False)]
    assert (found.others, found.endless, found.others_endless) == ("1", own, False)
    assert "own run" in page
    assert "secret run" not in page
    assert f"Expected start: not known, job {own.pk} has no time limit" in page
    assert f"Job {waiting.pk}" in page


def test_holders_of_others_without_a_limit_are_not_named(as_alice, alice, bob, cluster, cards, waiting):
    holding(bob, cluster, cards[0], "secret run")

    page = as_alice.get(f"/jobs/{waiting.pk}/").content.decode()

    assert "Expected start: not known, a running job has no time limit" in page
    assert "secret run" not in page


def test_holders_are_none_of_a_job_that_runs_or_waits_for_something_else(alice, cluster, cards):
    held = holding(alice, cluster, cards[0], "own run")
    behind = work.job(alice, cluster, name="behind", wait_code="after_success", wait_args={"job": held.pk})

    assert holders.holders_of(held, alice, now()) is None
    assert holders.holders_of(behind, alice, now()) is None


def test_jobs_are_found_by_name_or_number_and_those_of_the_caller_alone(api, as_olga, alice, bob, cluster, node):
    mine = work.job(alice, cluster, name="digits")
    other = work.job(alice, cluster, name="cells")
    work.job(bob, cluster, name="digits of bob")

    def numbers(client, **query):
        return [row["id"] for row in client.get("/api/v1/jobs/", query).json()["results"]]

    assert numbers(api, search="digi", mine=1) == [mine.pk]
    assert numbers(api, search=f"#{other.pk}") == [other.pk]
    assert numbers(api, search=str(other.pk), mine=1) == [other.pk]
    assert len(numbers(as_olga, search="digits")) == 2
    assert numbers(as_olga, search="digits", mine=1) == []


def test_limits_page_shows_what_is_in_effect_as_the_overview_does(as_olga, cluster, node):
    pages = [as_olga.get(f"/clusters/{cluster.pk}/{tab}").content.decode() for tab in ("", "bounds/")]

    for page in pages:
        assert "0.5 to 4 CPU cores" in page
    assert "A minimum counts up to one eighth of it." in pages[1]


def test_outputs_of_a_folder_with_many_files_are_one_row():
    made = now()
    few = [Output(f"model/{name}", 10, made) for name in ("a", "b")]
    many = [Output(f"samples/step-1/{number}.jpg", 5, made) for number in range(9)]

    folders = files.by_folder([Output("metrics.json", 1, made), *few, *many])

    assert [(one.name, len(one.files), one.size_bytes) for one in folders] == [("", 3, 21), ("samples", 9, 45)]
