"""What members see of their cluster: their own, borrowed and lent cards, who works, who waits, whom to ask."""

from datetime import timedelta

import pytest

from tests.conftest import signed_in
from tests.factories import people, work
from workers.core.models import Attempt
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import cluster_use, clusters, members

pytestmark = pytest.mark.django_db


@pytest.fixture
def cards(db):
    return list(work.node("node1", gpus=4).devices.filter(kind="gpu").order_by("index"))


@pytest.fixture
def lab(cards):
    return clusters.save(None, name="lab", devices={"gpu": Quota(2, borrows=True)})


@pytest.fixture
def vision(lab):
    return clusters.save(None, name="vision", devices={"gpu": Quota(2)})


@pytest.fixture
def three_jobs(lab, alice, cards):
    """Three jobs of one card each in a cluster of two cards, in the order of their names."""
    members.add(lab, [alice])
    made = []
    for number in range(3):
        job = work.job(alice, lab, name=f"job {number}", state="running", gpus_per_node=1)
        work.hold(job, cards[number])
        begun = job.attempts.get().started_at
        Attempt.objects.filter(job=job).update(started_at=begun + timedelta(minutes=number))
        made.append(job)
    return made


def test_cluster_use_counts_own_borrowed_and_lent_cards(lab, vision, three_jobs):
    mine, theirs = cluster_use.by_kind(lab)[0], cluster_use.by_kind(vision)[0]

    assert (mine.guaranteed, mine.used, mine.within, mine.borrowed, mine.lent, mine.free) == (2, 3, 2, 1, 0, 1)
    assert (theirs.guaranteed, theirs.used, theirs.borrowed, theirs.lent, theirs.free) == (2, 0, 0, 1, 1)


def test_cluster_use_marks_the_job_started_beyond_the_guarantee_as_borrowed(three_jobs, alice):
    assert [cluster_use.is_borrowed(job) for job in three_jobs] == [False, False, True]

    page = signed_in(alice).get(f"/jobs/{three_jobs[2].pk}/").content.decode()
    other = signed_in(alice).get(f"/jobs/{three_jobs[0].pk}/").content.decode()

    assert "on borrowed GPUs: may be preempted" in page
    assert "on borrowed GPUs" not in other


def test_cluster_page_shows_members_who_works_and_outsiders_nothing(as_alice, as_bob, as_anna, lab, three_jobs, bob):
    work.job(bob, lab, name="secret wish", wait_code="no_cards", wait_args={"asked": 1, "free": 0})

    answer = as_alice.get(f"/clusters/{lab.pk}/")
    page = answer.content.decode()
    uses = {use.person.username: (use.cards, use.running, use.waiting) for use in answer.context["people"]}

    assert uses == {"alice": (3.0, 3, 0), "bob": (0.0, 0, 1)}
    assert "1 borrowed" in page
    assert "secret wish" not in page
    assert "Waits for GPUs" in page
    assert [client.get(f"/clusters/{lab.pk}/").status_code for client in (as_bob, as_anna)] == [404, 403]


def test_cluster_page_lets_members_change_nothing(as_alice, lab, three_jobs):
    urls = ("edit/", "members/", "bounds/", "requests/", "members/add/", "delete/")

    codes = [as_alice.post(f"/clusters/{lab.pk}/{url}").status_code for url in urls]

    assert set(codes) <= {403, 404, 405}


def test_cluster_administrator_manages_people_but_not_cards(as_alice, lab, alice, bob, three_jobs):
    members.set_administrator(lab, alice, on=True)

    page = as_alice.get(f"/clusters/{lab.pk}/members/")
    as_alice.post(f"/clusters/{lab.pk}/members/add/", {"people": "bob"})
    codes = [as_alice.post(f"/clusters/{lab.pk}/{url}").status_code for url in ("edit/", "bounds/", "delete/")]
    charge = as_alice.post(f"/clusters/{lab.pk}/members/{bob.pk}/charge/", {"on": "1"}).status_code

    assert page.status_code == 200
    assert lab.members.filter(pk=bob.pk).exists()
    assert (codes, charge) == ([403, 403, 403], 403)


def test_cluster_page_tells_people_without_a_cluster_whom_to_ask(olga):
    rosa = signed_in(people.user("rosa"))

    pages = [rosa.get(url).content.decode() for url in ("/", "/account/")]

    assert all("You are not a member of a cluster" in page and "Olga" in page for page in pages)


def test_cluster_settings_switch_the_current_cluster(as_alice, alice, lab, three_jobs):
    page = as_alice.get("/account/").content.decode()
    as_alice.post("/current-cluster/", {"cluster": lab.pk, "next": "/account/"})

    assert "Set as current" in page
    assert members.current(alice) == lab


def test_cluster_administrator_sets_priorities_in_their_own_cluster_only(as_alice, lab, vision, alice, bob, three_jobs):
    members.set_administrator(lab, alice, on=True)
    mine, other = work.job(bob, lab, name="mine"), work.job(bob, vision, name="other")

    page = as_alice.get(f"/clusters/{lab.pk}/priorities/").content.decode()
    codes = [
        as_alice.post(f"/clusters/{cluster.pk}/priorities/{job.pk}/", {"priority": priority}).status_code
        for cluster, job, priority in ((lab, mine, 7), (lab, other, 7), (vision, other, 7), (lab, mine, "x"))
    ]
    as_alice.post(f"/clusters/{lab.pk}/priorities/{three_jobs[0].pk}/", {"priority": 9})
    mine.refresh_from_db()
    three_jobs[0].refresh_from_db()

    assert "mine" in page
    assert codes == [302, 404, 404, 302]
    assert (mine.priority, three_jobs[0].priority) == (7, 0)
    assert mine.events.get(event="priority_changed").by == alice


def test_cluster_api_gives_the_use_and_sets_priorities_by_the_same_rules(as_alice, as_bob, lab, alice, bob, three_jobs):
    job = work.job(bob, lab, name="mine")
    body = {"job": job.pk, "priority": 5}

    use = as_alice.get(f"/api/v1/clusters/{lab.pk}/use/").json()
    plain = as_alice.post(f"/api/v1/clusters/{lab.pk}/priority/", body, content_type="application/json").status_code
    members.set_administrator(lab, alice, on=True)
    set_now = as_alice.post(f"/api/v1/clusters/{lab.pk}/priority/", body, content_type="application/json")

    assert use["devices"][0] | {"borrowed": 1.0, "used": 3.0, "guaranteed": 2} == use["devices"][0]
    assert use["people"][0] == {"user": "alice", "cards": 3.0, "running": 3, "waiting": 0}
    assert as_bob.get(f"/api/v1/clusters/{lab.pk}/use/").status_code == 404
    assert (plain, set_now.status_code, set_now.json()["priority"]) == (404, 200, 5)


def test_cluster_page_costs_the_same_for_many_people(as_alice, lab, cards, three_jobs, django_assert_max_num_queries):
    for number in range(24):
        person = people.user(f"person{number}")
        members.add(lab, [person])
        work.job(person, lab, name=f"wish {number}")

    with django_assert_max_num_queries(40):
        assert as_alice.get(f"/clusters/{lab.pk}/").status_code == 200
