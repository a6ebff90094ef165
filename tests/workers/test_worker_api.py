import pytest

from tests.factories import curves, work
from workers.core.models import VirtualCluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(alice, cluster):
    job = work.job(alice, cluster, name="alices run", state="running")
    node = work.node(gpus=1)
    work.hold(job, node.devices.get(kind="gpu"))
    return job


@pytest.fixture
def as_person():
    from rest_framework.test import APIClient

    def sign_in(user):
        client = APIClient()
        client.force_authenticate(user)
        return client

    return sign_in


def test_job_api_says_where_it_is_and_which_buttons_it_has(api, running):
    row = api.get(f"/api/v1/jobs/{running.pk}/").json()

    assert (row["state"], row["cluster"], row["owner"]) == ("running", "default", "alice")
    assert row["devices"] == [{"node": "node1", "kind": "gpu", "index": 0, "simulated": False}]
    assert {a["verb"]: a["allowed"] for a in row["actions"]}["stop"]


def test_job_api_filters_by_what_it_knows_and_refuses_the_rest(api, alice, cluster, running):
    work.job(alice, cluster, name="wish")

    waiting = api.get("/api/v1/jobs/", {"state": "queued"}).json()["results"]
    live = api.get("/api/v1/jobs/", {"state": "live", "search": "alices"}).json()["results"]
    odd = [
        api.get("/api/v1/jobs/", query)
        for query in (
            {"owner__password__startswith": "a"},
            {"state": "nonsense"},
            {"cluster": "1e9"},
            {"ordering": "x"},
        )
    ]

    assert [row["name"] for row in waiting] == ["wish"]
    assert [row["name"] for row in live] == ["alices run"]
    assert [(answer.status_code, answer.json()["code"]) for answer in odd] == [(400, "invalid")] * 4


def test_job_api_reads_the_log_by_offset(api, running):
    work.run_dir(running).log.write_bytes(b"one\ntwo\nthree\n")

    size = api.get(f"/api/v1/jobs/{running.pk}/log/", {"offset": 0, "limit": 0}).json()
    piece = api.get(f"/api/v1/jobs/{running.pk}/log/", {"offset": 4, "limit": 4}).json()
    tail = api.get(f"/api/v1/jobs/{running.pk}/log/", {"tail": 8}).json()
    before = api.get(f"/api/v1/jobs/{running.pk}/log/", {"before": 8}).json()

    assert (size["size"], size["text"], size["ended"]) == (14, "", False)
    assert (piece["text"], piece["offset"], piece["next_offset"]) == ("two\n", 4, 8)
    assert tail["text"] == "three\n"
    assert before["text"] == "one\ntwo\n"


def test_job_api_raw_log_honours_range(api, running):
    work.run_dir(running).log.write_bytes(b"0123456789")

    whole = api.get(f"/api/v1/jobs/{running.pk}/log/raw/")
    part = api.get(f"/api/v1/jobs/{running.pk}/log/raw/", headers={"Range": "bytes=2-4"})

    assert b"".join(whole.streaming_content) == b"0123456789"
    assert (part.status_code, b"".join(part.streaming_content)) == (206, b"234")
    assert "attachment" in whole["Content-Disposition"]
    assert whole["X-Content-Type-Options"] == "nosniff"


def test_job_api_gives_curves_in_pairs_with_times_beside(api, running):
    attempt = running.attempts.get()
    curves.report(attempt, "val/ap", [(3, 0.5, running.created_at)])
    curves.report(attempt, "train/loss", [(3, 1.5, running.created_at)])

    found = api.get(f"/api/v1/jobs/{running.pk}/metrics/", {"key": "val/ap"}).json()

    assert found["keys"] == ["train/loss", "val/ap"]
    assert found["series"] == {"val/ap": [[3, 0.5]]}
    assert found["newest"] == {"val/ap": {"step": 3, "value": 0.5}}
    assert len(found["times"]["val/ap"]) == 1


def test_job_api_answers_a_request_with_202(api, running):
    answer = api.post(f"/api/v1/jobs/{running.pk}/pause/")

    assert (answer.status_code, answer.json()["desired"]) == (202, "pause")


@pytest.mark.parametrize("part", ["", "log/", "log/raw/", "metrics/", "story/"])
def test_job_api_answers_for_a_strangers_job_like_a_missing_one(as_person, bob, running, part):
    client = as_person(bob)

    theirs = client.get(f"/api/v1/jobs/{running.pk}/{part}")
    missing = client.get(f"/api/v1/jobs/{10**9}/{part}")

    assert theirs.status_code == missing.status_code == 404
    assert {**theirs.json(), "instance": ""} == {**missing.json(), "instance": ""}


@pytest.mark.parametrize("verb", ["pause", "continue", "suspend", "stop", "finish", "restore"])
def test_job_api_lets_nobody_else_press_the_buttons(as_person, bob, anna, running, verb):
    codes = [as_person(who).post(f"/api/v1/jobs/{running.pk}/{verb}/").status_code for who in (bob, anna)]
    running.refresh_from_db()

    assert codes == [404, 403]
    assert running.desired == "run"


def test_cluster_api_is_seen_by_members_and_changed_by_administrators(as_person, alice, olga, anna):
    VirtualCluster.objects.create(name="other")

    mine = as_person(alice).get("/api/v1/clusters/").json()["results"]
    every = as_person(olga).get("/api/v1/clusters/").json()["results"]
    refused = as_person(alice).post("/api/v1/clusters/", {"name": "x"}, format="json")
    made = as_person(olga).post(
        "/api/v1/clusters/",
        {"name": "x", "devices": [{"kind": "gpu", "per_user": 2}], "max_runtime_s": 3600},
        format="json",
    )
    url = f"/api/v1/clusters/{made.json()['id']}/"
    changed = as_person(olga).patch(url, {"devices": [{"kind": "gpu", "per_user": None}]}, format="json").json()

    assert [row["name"] for row in mine] == ["default"]
    assert [row["name"] for row in every] == ["default", "other"]
    assert (refused.status_code, made.status_code) == (403, 201)
    assert (made.json()["devices"][0]["per_user"], changed["devices"]) == (2, [])
    assert (changed["max_runtime_s"], changed["name"]) == (3600, "x")
    assert as_person(olga).delete(url).status_code == 204
    assert as_person(anna).get("/api/v1/clusters/").status_code == 403


def test_node_api_lists_machines_with_their_devices(api, running):
    node = api.get("/api/v1/nodes/").json()["results"][0]
    gpus = api.get("/api/v1/devices/", {"kind": "gpu", "node": node["id"]}).json()["results"]

    assert node["name"] == "node1"
    assert [(gpu["kind"], gpu["used"], gpu["capacity"]) for gpu in gpus] == [("gpu", 8, 8)]
