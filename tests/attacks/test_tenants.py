"""Cases about whose something is: another's cached answer, another's cluster, and other ways of asking."""

from __future__ import annotations

import pytest

from datasets.models import Dataset
from tests.conftest import signed_in
from tests.factories import datasets as data
from workers.core.models import Membership, VirtualCluster

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def chief(bob, cluster):
    """Bob, in charge of the cluster."""
    Membership.objects.update_or_create(user=bob, cluster=cluster, defaults={"administers": True})
    return signed_in(bob)


def test_b09_response_etag_of_anothers_answer_opens_nothing(alice, bob):
    asset = data.version(data.dataset(alice, "cells")).assets.order_by("pk").first()
    address = f"/datasets/images/{asset.pk}/thumbnail/"
    first = signed_in(alice).get(address)
    stamp = {"If-None-Match": first["ETag"]}

    assert signed_in(alice).get(address, headers=stamp).status_code == 304  # the stamp is worth something
    assert signed_in(bob).get(address, headers=stamp).status_code == 404
    assert "private" in first["Cache-Control"]


def test_b09_responses_at_one_address_are_each_persons_own(alice, bob):
    for path in ("/api/v1/me/", "/account/", "/"):
        mine = signed_in(alice).get(path)
        stamp = {"If-None-Match": mine.get("ETag", '"x"'), "If-Modified-Since": "Sun, 06 Nov 2044 08:49:37 GMT"}
        theirs = signed_in(bob).get(path, headers=stamp)
        assert theirs.status_code == 200, path
        assert theirs.content != mine.content, path
        assert "no-store" in theirs["Cache-Control"], path


def test_c03_cluster_administrator_changes_no_limits_and_no_other_cluster(chief, bob, cluster):
    other = VirtualCluster.objects.create(name="elsewhere")
    before = (cluster.name, cluster.jobs_per_user, cluster.max_runtime, cluster.quotas.count())
    here, there = f"/api/v1/clusters/{cluster.pk}/", f"/api/v1/clusters/{other.pk}/"

    assert chief.get(f"{here}members/").status_code == 200  # in charge of people indeed
    for method, path, sent in [
        ("patch", here, {"jobs_per_user": 999}),
        ("put", f"{here}bounds/", {}),
        ("delete", here, {}),
        ("post", "/api/v1/clusters/", {"name": "mine"}),
        ("post", f"{there}members/", {"user": bob.pk}),
        ("post", f"{there}members/", {"username": "bob"}),
    ]:
        assert getattr(chief, method)(path, sent, JSON).status_code in {403, 404}, (method, path)
    cluster.refresh_from_db()
    assert (cluster.name, cluster.jobs_per_user, cluster.max_runtime, cluster.quotas.count()) == before
    assert not Membership.objects.filter(user=bob, cluster=other).exists()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/training/jobs.json", "//api/v1/training/jobs/", "/API/V1/training/jobs/", "/api/v1/training/jobs/;/",
        "/api/v1/./training/jobs/", "/api/v1/training//jobs/", "/api/v1/training/jobs/%2e/",
        "/api/v1/training/jobs/?format=api",
    ],
)  # fmt: skip
def test_c08_routes_open_by_no_other_way_of_writing_an_address(anna, path):
    browser = signed_in(anna)

    assert browser.get("/api/v1/training/jobs/").status_code == 403
    for method in ("get", "head", "post", "put", "patch", "delete", "options"):
        assert getattr(browser, method)(path).status_code in {301, 400, 403, 404, 405}, method


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_c08_requests_are_turned_into_no_other_by_a_header(alice, header):
    mine = data.dataset(alice, "streets")

    answer = signed_in(alice).post(f"/api/v1/datasets/{mine.pk}/", {}, JSON, headers={header: "DELETE"})
    form = signed_in(alice).post(f"/api/v1/datasets/{mine.pk}/?_method=DELETE", {"_method": "DELETE"})

    assert (answer.status_code, form.status_code) == (405, 405)
    assert Dataset.objects.filter(pk=mine.pk, deleting=False).exists()
