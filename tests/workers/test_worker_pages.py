"""Pages of queue, machines, tasks, clusters and jobs, for the whole cast."""

import pytest
from django.test import Client
from django.utils.timezone import now

from tests.factories import work
from workers.core.models import Job, VirtualCluster
from workers.jobs import queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(db):
    return work.node("node1", gpus=2, simulated=True, facts={"cpu_percent": 95.0, "memory_used_mib": 10})


@pytest.fixture
def running(alice, cluster, node):
    job = work.job(alice, cluster, name="alices run", state="running", gpus_per_node=1, progress=0.5, eta_s=90)
    work.hold(job, node.devices.get(kind="gpu", index=0))
    return job


@pytest.fixture
def waiting(alice, cluster):
    args = {"asked": 4, "free": 1}
    return work.job(
        alice, cluster, name="alices wish", gpus_per_node=4, wait_code="no_cards", wait_args=args, position=1, eta=now()
    )


def test_queue_page_tells_place_reason_and_start(as_alice, waiting, running):
    page = as_alice.get("/queue/").content.decode()

    assert "alices wish" in page
    assert "Waits for GPUs: 4 needed, 1 free." in page
    assert "alices run" in page


def test_queue_page_shows_that_others_wait_but_not_what(as_bob, waiting):
    page = as_bob.get("/queue/").content.decode()

    assert "alices wish" not in page
    assert "Waits for GPUs: 4 needed, 1 free." in page


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"gpus_per_node": 1}, "1 GPU"),
        ({"gpus_per_node": 2, "nodes": 2}, "4 GPUs"),
        ({"cpus": 1.5}, "1.5 × CPU"),
        ({"cpus": 2.0}, "2 × CPU"),
    ],
)
def test_queue_page_says_what_a_job_asks_for(as_alice, alice, cluster, asked, words):
    work.job(alice, cluster, **asked)

    page = as_alice.get("/queue/").content.decode()

    assert f">{words}<" in page


def test_queue_reads_of_jobs_and_people_only_what_it_shows(alice, bob, cluster, django_assert_num_queries):
    for number in range(5):
        work.job((alice, bob)[number % 2], cluster, gpus_per_node=number)

    with django_assert_num_queries(4):  # what alice may do, clusters, jobs, people
        entries, total = queue.waiting(alice)

    assert ([entry.owner for entry in entries], total) == ([alice, bob, alice, bob, alice], 5)


def test_queue_page_hides_a_clusters_queue_from_outsiders(as_bob, waiting, alice):
    waiting.cluster = VirtualCluster.objects.create(name="secret lab")
    waiting.save()

    page = as_bob.get("/queue/").content.decode()

    assert "Waits for GPUs" not in page
    assert "secret lab" not in page


def test_nodes_page_shows_load_by_word_and_who_is_on_them(as_alice, as_bob, running, node):
    mine = as_alice.get("/cluster/").content.decode()
    theirs = as_bob.get(f"/cluster/nodes/{node.pk}/").content.decode()

    assert "Heavy load" in mine
    assert "alices run" in mine
    assert "Simulated" in mine or "simulated" in mine
    assert "alices run" not in theirs
    assert "Alice" in theirs


def test_nodes_page_shows_no_data_of_a_silent_machine(as_alice, node):
    node.heartbeat_at = now().replace(year=2020)
    node.save()

    views = as_alice.get("/cluster/").context["nodes"]

    assert [view.load_key for view in views] == ["none"]


def test_job_page_has_all_parts_and_says_why_buttons_are_disabled(as_alice, running):
    page = as_alice.get(f"/jobs/{running.pk}/").content.decode()

    assert all(part in page for part in ("data-log=", "job-tabs", "job-events", "50 %"))
    assert "Only a paused job can be continued." in page
    assert "The job can be restored after it has ended." in page


def test_job_page_parts_can_be_fetched_alone(as_alice, running):
    header = as_alice.get(f"/jobs/{running.pk}/header/").content.decode()
    story = as_alice.get(f"/jobs/{running.pk}/events/").content.decode()

    assert "<html" not in header
    assert 'id="job-head"' in header
    assert 'id="job-events"' in story


def test_job_page_button_writes_the_request(as_alice, running):
    answer = as_alice.post(f"/jobs/{running.pk}/do/pause/")
    part = as_alice.post(f"/jobs/{running.pk}/do/stop/", headers={"HX-Request": "true"})
    running.refresh_from_db()

    assert answer.status_code == 302
    assert 'id="job-head"' in part.content.decode()
    assert running.desired == "stop"


def test_job_page_unknown_button_does_not_exist(as_alice, running):
    assert as_alice.post(f"/jobs/{running.pk}/do/explode/").status_code == 404


def test_job_page_of_a_strangers_job_does_not_exist(as_bob, running):
    asked = [
        as_bob.get(f"/jobs/{running.pk}/"),
        as_bob.get(f"/jobs/{running.pk}/header/"),
        as_bob.get(f"/jobs/{running.pk}/events/"),
        as_bob.post(f"/jobs/{running.pk}/do/stop/"),
    ]

    assert [answer.status_code for answer in asked] == [404] * 4
    running.refresh_from_db()
    assert running.desired == "run"


PAGES = ["/queue/", "/cluster/", "/tasks/", "/clusters/", "/clusters/new/"]


@pytest.mark.parametrize("page", PAGES)
def test_nodes_page_is_closed_to_annotators(as_anna, page):
    assert as_anna.get(page).status_code == 403


@pytest.mark.parametrize("page", PAGES)
def test_worker_pages_send_strangers_to_sign_in(page, db):
    answer = Client().get(page)

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


@pytest.mark.parametrize("page", PAGES[2:])
def test_worker_administration_pages_are_for_administrators(as_alice, as_olga, page):
    assert as_alice.get(page).status_code == 403
    assert as_olga.get(page).status_code == 200


def test_queue_page_lets_the_operator_find_and_stop_jobs_of_all(as_olga, running, waiting, bob, cluster):
    other = work.job(bob, cluster, name="bobs run", state="failed")

    found = as_olga.get("/tasks/", {"search": "alice", "state": "live"}).content.decode()
    as_olga.post("/api/v1/jobs/stop/", {"jobs": [running.pk, waiting.pk, other.pk]}, content_type="application/json")

    assert "alices run" in found
    assert "bobs run" not in found
    assert list(Job.objects.filter(desired="stop")) == [running]
    assert Job.objects.get(pk=waiting.pk).state == "stopped"


def test_worker_lists_cost_the_same_for_many_jobs(as_olga, alice, cluster, node, django_assert_max_num_queries):
    for n in range(30):
        job = work.job(alice, cluster, name=f"run {n}", state="running")
        work.hold(job, node.devices.get(kind="cpu"), share=1)
        work.job(alice, cluster, name=f"wish {n}")

    for page in ("/tasks/", "/queue/", "/cluster/"):
        with django_assert_max_num_queries(25):
            assert as_olga.get(page).status_code == 200


def test_cluster_page_creates_changes_and_deletes(as_olga, bob, node):
    limits = {"name": "vision", "guaranteed_gpu": 2, "per_user_gpu": "", "jobs_per_user": 2, "max_runtime_hours": "1.5"}
    made = as_olga.post("/clusters/new/", limits)
    vision = VirtualCluster.objects.get(name="vision")
    again = as_olga.post("/clusters/new/", limits)
    as_olga.post(f"/clusters/{vision.pk}/edit/", limits | {"guaranteed_gpu": ""})
    as_olga.post(f"/clusters/{vision.pk}/members/add/", {"people": "bob"})
    work.job(bob, vision, name="bobs wish")
    refused = as_olga.post(f"/clusters/{vision.pk}/delete/", {"confirm": vision.name}, follow=True)
    bob.jobs.all().delete()
    as_olga.post(f"/clusters/{vision.pk}/members/{bob.pk}/remove/")
    vision.refresh_from_db()
    before = (vision.quotas.count(), vision.jobs_per_user, vision.max_runtime.total_seconds(), vision.members.count())
    as_olga.post(f"/clusters/{vision.pk}/delete/", {"confirm": vision.name})

    assert made.status_code == 302
    assert again.status_code == 422
    assert "A cluster named vision already exists." in again.content.decode()
    assert "“bobs wish”" in refused.content.decode()
    assert before == (0, 2, 5400, 0)
    assert not VirtualCluster.objects.filter(name="vision").exists()


def test_cluster_page_keeps_a_member_who_has_work_there(as_olga, alice, cluster, running):
    answer = as_olga.post(f"/clusters/{cluster.pk}/members/{alice.pk}/remove/", follow=True)

    assert "“alices run”" in answer.content.decode()
    assert cluster.members.filter(pk=alice.pk).exists()


def test_job_admin_site_opens_and_stops_a_job(client, olga, running, node):
    olga.is_staff = olga.is_superuser = True
    olga.save()
    client.force_login(olga)

    pages = [f"/admin/workers/{name}/" for name in ("job", "node", "device", "allocation", "virtualcluster", "lease")]
    codes = [client.get(page).status_code for page in [*pages, f"/admin/workers/job/{running.pk}/change/"]]
    client.post("/admin/workers/job/", {"action": "stop", "_selected_action": [running.pk]})
    running.refresh_from_db()

    assert set(codes) == {200}
    assert running.desired == "stop"
