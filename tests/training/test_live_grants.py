"""What an administrator grants counts from the very next request, what is limited from the next start."""

import pytest
from rest_framework.test import APIClient

from accounts.services import tokens
from tests.factories import people, work
from tests.factories import training as factory
from workers.core.models import Job
from workers.scheduling.loop import Scheduler

pytestmark = pytest.mark.postgres

TRAININGS = "/api/v1/training/jobs/"


def by_token(user) -> APIClient:
    """A client that is asked anew who it is with every request, as a script is."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {tokens.issue(user=user, name='script')[1]}")
    return client


@pytest.fixture
def admin(olga):
    return by_token(olga)


def state(job: int) -> tuple[str, str]:
    row = Job.objects.get(pk=job)
    return row.state, row.wait_code


def test_cluster_membership_counts_from_the_next_submission(admin, cluster):
    work.node(gpus=1)
    carl = people.user("carl")
    script, asked = by_token(carl), {"name": "cells", "version": factory.version(carl).pk, "gpus_per_node": 1}
    members = f"/api/v1/clusters/{cluster.pk}/members/"

    before = script.post(TRAININGS, asked, format="json")
    admin.post(members, {"user": "carl"}, format="json")
    after = script.post(TRAININGS, asked, format="json")
    Scheduler().tick()
    left = admin.delete(f"{members}?user=carl")

    assert (before.status_code, before.json()["code"]) == (403, "not_a_member")
    assert after.status_code == 201
    assert state(after.json()["job"]) == ("assigned", "")
    assert (left.status_code, left.json()["code"]) == (409, "still_in_use")  # not while a job of theirs runs there


def test_cluster_quota_raised_starts_waiting_and_lowered_stops_nothing(admin, alice, cluster):
    work.node(gpus=2)
    route = f"/api/v1/clusters/{cluster.pk}/"
    scheduler, script = Scheduler(), by_token(alice)

    def cards(number: int | None) -> None:
        sent = {"devices": [{"kind": "gpu", "guaranteed": number, "borrows": False, "per_user": None}]}
        assert admin.patch(route, sent, format="json").status_code == 200
        scheduler.tick()

    asked = {"name": "cells", "version": factory.version(alice).pk, "gpus_per_node": 1}
    cards(1)
    first, second = (script.post(TRAININGS, asked, format="json").json()["job"] for _ in range(2))
    scheduler.tick()
    assert (state(first)[0], state(second)) == ("assigned", ("queued", "cluster_quota"))
    cards(2)
    assert state(second)[0] == "assigned"

    cards(0)
    third = script.post(TRAININGS, asked, format="json")

    assert [state(job)[0] for job in (first, second)] == ["assigned", "assigned"]
    assert third.status_code in (409, 422)
