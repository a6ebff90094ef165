"""What owners ask of their environments: more time, still needed, delete."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from training.environments.models import Environment
from workers.core.models import Attempt, Job, TimeRequest, VirtualCluster

API = "/api/v1/environments/"


@pytest.fixture
def running(submitted):
    row = submitted(max_runtime=timedelta(hours=3))
    Job.objects.filter(pk=row.pk).update(state="running", attempt_number=1)
    Attempt.objects.create(job_id=row.pk, number=1, state="running", started_at=now() - timedelta(hours=1))
    return row


def fresh(row) -> Environment:
    return Environment.objects.select_related("job").get(pk=row.pk)


def test_owner_gets_two_hours_more_at_once_within_the_clusters_limit(running, as_alice, api):
    page = as_alice.post(f"/environments/{running.pk}/extend/")
    answer = api.post(f"{API}{running.pk}/extend/", {"hours": 1}, format="json")

    assert page["Location"] == f"/jobs/{running.pk}/"
    assert answer.json() == {"granted": True}
    assert fresh(running).job.max_runtime == timedelta(hours=6)
    assert 4.9 < api.get(f"{API}{running.pk}/").json()["left_s"] / 3600 < 5.1


def test_more_than_the_cluster_allows_is_asked_of_those_in_charge(running, cluster, api):
    VirtualCluster.objects.filter(pk=cluster.pk).update(max_runtime=timedelta(hours=4))

    answer = api.post(f"{API}{running.pk}/extend/", {}, format="json")
    twice = api.post(f"{API}{running.pk}/extend/", {}, format="json")

    assert answer.json() == {"granted": False}
    assert TimeRequest.objects.get().span == timedelta(hours=2)
    assert twice.status_code == 409
    assert fresh(running).job.max_runtime == timedelta(hours=3)


@pytest.mark.parametrize("hours", [0, -1, 1e9, "NaN"])
def test_odd_spans_are_refused(running, api, hours):
    assert api.post(f"{API}{running.pk}/extend/", {"hours": hours}, format="json").status_code == 400


def test_owner_says_that_it_is_still_needed(running, as_alice, api):
    before = now()
    Environment.objects.filter(pk=running.pk).update(
        attempt=1, idle_since=before - timedelta(hours=9), warned_at=before, ready_at=before, alive_at=before
    )

    page = as_alice.post(f"/environments/{running.pk}/keep/", headers={"HX-Request": "true"})

    row = fresh(running)
    assert page.status_code == 200
    assert (row.warned_at, row.alive_by) == (None, "owner")
    assert row.idle_since >= before
    Job.objects.filter(pk=running.pk).update(state="stopped")
    assert api.post(f"{API}{running.pk}/keep/").status_code == 409


def test_only_ended_environments_are_deleted_and_their_jobs_stay(running, api, as_alice):
    assert api.delete(f"{API}{running.pk}/").status_code == 409

    Job.objects.filter(pk=running.pk).update(state="stopped")
    answer = api.delete(f"{API}{running.pk}/")

    assert answer.status_code == 204
    assert api.get(f"{API}{running.pk}/").status_code == 404
    assert api.get(f"/api/v1/jobs/{running.pk}/").status_code == 200
    assert as_alice.get("/environments/").context["page"].rows == []
    assert api.post(f"/api/v1/jobs/{running.pk}/restore/").status_code == 409


def test_acts_are_for_owners_and_operators(running, as_bob, as_olga):
    acts = [f"/environments/{running.pk}/{act}/" for act in ("keep", "extend", "delete")]

    assert [as_bob.post(act).status_code for act in acts] == [404] * 3
    assert as_olga.post(acts[0]).status_code == 302
