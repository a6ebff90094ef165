"""Jobs that wait until somebody in charge of their cluster lets them start."""

import pytest
from rest_framework.test import APIClient

from tests.conftest import signed_in
from tests.factories import people, work
from workers.core.models import Approval, Job
from workers.jobs import actions, approval, submission
from workers.scheduling.loop import Scheduler

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def careful(cluster, kind):
    """A cluster that asks for approvals, and a kind that needs them."""
    kind.approvable = True
    cluster.approves_environments = True
    cluster.save()
    work.node(cores=8)
    return cluster


@pytest.fixture
def chief(careful):
    """Somebody in charge of the cluster."""
    person = people.user("chief", cluster=careful)
    careful.memberships.filter(user=person).update(administers=True)
    return person


@pytest.fixture
def api_of():
    """The REST API as somebody."""

    def client(person):
        made = APIClient()
        made.force_authenticate(person)
        return made

    return client


@pytest.fixture
def put(alice, careful):
    def one(owner=alice):
        return submission.submit(owner=owner, cluster=careful, kind="command", name="lab")

    return one


def state(job):
    return Job.objects.get(pk=job.pk).state


def test_approval_holds_a_job_back_until_it_is_given(put, chief):
    job, scheduler = put(), Scheduler()
    scheduler.tick()
    job.refresh_from_db()
    told = job.wait_sentence
    approval.answer(job.approval, grant=True, by=chief)

    scheduler.tick()

    assert told == "Waiting for approval by a cluster administrator."
    assert state(job) == "assigned"


def test_approval_refused_ends_the_job_with_the_word(put, chief, alice):
    job = put()

    approval.answer(job.approval, grant=False, by=chief, word="Use the small cards.")

    job.refresh_from_db()
    assert (job.state, job.reason) == ("stopped", "refused")
    assert str(job.message) == "The start was rejected: Use the small cards."
    assert [str(one.title) for one in alice.notifications.all()] == ["Command “lab” was denied"]


def test_approval_tells_those_in_charge_once_and_the_owner_of_the_answer(put, chief, alice):
    job = put()
    approval.request([job])
    approval.answer(job.approval, grant=True, by=chief)

    assert [str(one.title) for one in chief.notifications.all()] == ["Alice requests to start Command “lab”"]
    assert [str(one.title) for one in alice.notifications.all()] == ["Command “lab” was approved"]


def test_approval_is_answered_once_and_only_while_the_job_waits(put, chief, alice):
    first, second = put(), put()
    approval.answer(first.approval, grant=True, by=chief)
    actions.stop(second, by=alice)

    for job in (first, second):
        with pytest.raises(approval.AnsweredAlready):
            approval.answer(Approval.objects.get(job=job), grant=False, by=chief)
    assert state(first) == "queued"


def test_approval_is_not_needed_of_other_kinds_other_clusters_and_those_who_give_it(put, chief, careful, kind):
    own = put(owner=chief)
    kind.approvable = False
    other = put()
    kind.approvable = True
    careful.approves_environments = False
    careful.save()
    elsewhere = put()

    assert not Approval.objects.filter(job__in=[own, other, elsewhere]).exists()


def test_approval_is_needed_no_more_once_the_cluster_asks_for_none(put, careful):
    job = put()
    careful.approves_environments = False
    careful.save()

    Scheduler().tick()

    assert state(job) == "assigned"


def test_approval_is_asked_again_for_a_refused_job_that_is_restored(put, chief):
    job = put()
    approval.answer(job.approval, grant=False, by=chief)

    actions.restore(job)
    Scheduler().tick()

    assert state(job) == "queued"
    assert Approval.objects.get(job=job).answer == "open"
    assert chief.notifications.count() == 2


def test_approval_page_is_for_those_in_charge(put, chief, as_alice, as_olga, careful):
    job = put()
    page = f"/clusters/{careful.pk}/approvals/"

    shown = signed_in(chief).get(page).content.decode()
    answer = signed_in(chief).post(
        f"/approvals/{job.approval.pk}/answer/", {"answer": "grant", f"{job.approval.pk}-word": "Go on."}
    )
    after = signed_in(chief).get(page).content.decode()

    assert "lab" in shown
    assert "Approve" in shown
    assert answer.status_code == 302
    assert "Approved: Go on." in after
    assert as_alice.get(page).status_code == 404
    assert as_olga.get(page).status_code == 200
    assert "Approved: Go on." in as_alice.get(f"/jobs/{job.pk}/").content.decode()


def test_approval_by_the_api(put, chief, api, api_of):
    job = put()

    mine = api.get("/api/v1/approvals/?answer=open").json()["results"]
    refused = api.post(f"/api/v1/approvals/{mine[0]['id']}/answer/", {"grant": True}, format="json")
    granted = api_of(chief).post(f"/api/v1/approvals/{mine[0]['id']}/answer/", {"grant": True}, format="json")

    assert [row["job"] for row in mine] == [job.pk]
    assert refused.status_code == 404
    assert (granted.status_code, granted.json()["answer"]) == (200, "granted")


def test_cluster_asks_for_approvals_by_its_page_and_the_api(as_olga, api_of, olga, cluster):
    fields = {"name": cluster.name, "approves_environments": "on"}

    page = as_olga.post(f"/clusters/{cluster.pk}/edit/", fields)
    cluster.refresh_from_db()
    by_page = cluster.approves_environments
    api_of(olga).patch(f"/api/v1/clusters/{cluster.pk}/", {"jobs_per_user": 3}, format="json")
    kept = api_of(olga).get(f"/api/v1/clusters/{cluster.pk}/").json()["approves_environments"]
    api_of(olga).patch(f"/api/v1/clusters/{cluster.pk}/", {"approves_environments": False}, format="json")
    cluster.refresh_from_db()

    assert page.status_code == 302
    assert (by_page, kept, cluster.approves_environments) == (True, True, False)
