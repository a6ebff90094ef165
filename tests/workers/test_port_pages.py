"""Ports on pages, in the API and on the command line: publish, open, share, withdraw."""

import re
import socket
import threading
import time
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import AuditEntry
from accounts.services import shares, tokens
from tests.factories import work
from workers.access.proxy import admissions, port_access, published_ports
from workers.access.proxy.models import Admission, PublishedPort

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(alice, cluster):
    return work.job(alice, cluster, name="dashboard", state="running")


@pytest.fixture
def web(job, alice):
    return published_ports.publish(job, port=40_000, by=alice, name="web")


def test_port_is_published_on_its_jobs_page(as_alice, job):
    answer = as_alice.post(f"/jobs/{job.pk}/ports/", {"port": "40001", "name": "demo"}, follow=True)

    page = answer.content.decode()
    assert "Published as demo" in page
    assert f'action="/jobs/{job.pk}/ports/demo/open/"' in page
    assert PublishedPort.objects.get().port == 40_001


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"port": "22"}, "Ensure this value is greater than or equal to 40000."),
        ({"port": "40000"}, "Port 40000 is already published."),
        ({"port": "40002", "name": "Web/.."}, "Lowercase letters, digits and - only."),
        ({"port": "40002", "name": "web"}, "Another port of this job already has this name."),
    ],
)
def test_port_page_says_what_is_wrong(as_alice, job, web, sent, said):
    page = as_alice.post(f"/jobs/{job.pk}/ports/", sent, follow=True).content.decode()

    assert said in page
    assert PublishedPort.objects.count() == 1


def test_port_refusals_come_all_at_once(api, alice, job, web):
    api.force_authenticate(alice)

    answer = api.post(f"/api/v1/jobs/{job.pk}/ports/", {"port": 40_000, "name": "web"}, format="json")

    assert answer.status_code == 409
    assert set(answer.json()["errors"]) == {"port", "name"}


def test_ports_of_an_ended_job_are_not_published(as_alice, alice, cluster):
    ended = work.job(alice, cluster, state="succeeded")

    page = as_alice.post(f"/jobs/{ended.pk}/ports/", {"port": "40001"}, follow=True).content.decode()

    assert "This job has ended" in page
    assert not PublishedPort.objects.exists()


def test_job_has_at_most_twenty_ports(alice, job):
    for number in range(published_ports.MAX_PORTS):
        published_ports.publish(job, port=40_000 + number, by=alice)

    with pytest.raises(published_ports.TooManyPorts):
        published_ports.publish(job, port=41_000, by=alice)


def test_open_button_leads_to_the_other_origin_with_a_ticket(as_alice, web):
    answer = as_alice.post(f"/jobs/{web.job_id}/ports/web/open/", HTTP_HOST="train.example:8000")

    leads = re.escape(f"http://train.example:8001/jobs/{web.job_id}/web/_enter?ticket=") + r"[\w-]{43}"
    assert re.fullmatch(f"0; url={leads}", answer["Refresh"])
    assert re.search(f'href="{leads}"', answer.content.decode())
    assert (answer["Referrer-Policy"], answer["Cache-Control"]) == ("no-referrer", "no-store")
    assert Admission.objects.get().session_key
    assert answer["Refresh"].rpartition("=")[2] not in str(list(Admission.objects.values()))


def test_open_asks_for_a_post(as_alice, web):
    assert as_alice.get(f"/jobs/{web.job_id}/ports/web/open/").status_code == 405
    assert not Admission.objects.exists()


def test_ports_do_not_exist_for_others(as_bob, as_anna, web):
    for path in ("open", "withdraw"):
        assert as_bob.post(f"/jobs/{web.job_id}/ports/web/{path}/").status_code == 404
        assert as_anna.post(f"/jobs/{web.job_id}/ports/web/{path}/").status_code == 403
    assert as_bob.post(f"/jobs/{web.job_id}/ports/", {"port": "40001"}).status_code == 404
    assert "web" not in as_bob.get("/ports/").content.decode().partition("<main")[2]
    assert PublishedPort.objects.count() == 1


def test_operators_see_a_port_and_are_refused_to_open_it(as_olga, web):
    answer = as_olga.post(f"/jobs/{web.job_id}/ports/web/open/")

    assert answer.status_code == 403
    assert "Ask the owner to share it with you." in answer.content.decode()


def test_shared_port_stands_in_the_list_of_who_may_open_it(as_bob, alice, web, settings):
    settings.PORTS_HOST = "jobs.example.org"
    shares.share(kind="port", pk=web.pk, level="view", by=alice, person="bob")

    page = as_bob.get("/ports/").content.decode()
    opened = as_bob.post(f"/jobs/{web.job_id}/ports/web/open/")

    assert "dashboard" in page
    assert f"http://job-{web.job_id}-web.jobs.example.org:8001/_enter" in opened["Refresh"]
    assert as_bob.post(f"/jobs/{web.job_id}/ports/web/withdraw/").status_code == 404


def test_withdrawn_port_is_gone_with_its_shares(as_alice, as_bob, alice, bob, web):
    shares.share(kind="port", pk=web.pk, level="view", by=alice, person="bob")

    as_alice.post(f"/jobs/{web.job_id}/ports/web/withdraw/")

    assert not PublishedPort.objects.exists()
    again = published_ports.publish(web.job, port=40_000, by=alice, name="web")
    assert not PublishedPort.objects.openable_by(bob).filter(pk=again.pk).exists()


def test_port_of_the_platform_is_not_withdrawn(as_alice, job):
    published_ports.provide(job, name="lab", socket="/tmp/lab.sock", path="lab", keeps_path=True, secret="s")

    page = as_alice.post(f"/jobs/{job.pk}/ports/lab/withdraw/", follow=True).content.decode()

    assert "This port is reserved for the job itself. Stop the job to close" in page
    assert PublishedPort.objects.exists()


def test_ports_are_in_the_audit_trail(as_alice, web):
    as_alice.post(f"/jobs/{web.job_id}/ports/web/open/")
    as_alice.post(f"/jobs/{web.job_id}/ports/web/withdraw/")

    verbs = list(AuditEntry.objects.order_by("pk").values_list("verb", flat=True))
    assert [verb for verb in verbs if verb.startswith("port_")] == ["port_published", "port_opened", "port_withdrawn"]


def test_ports_can_be_switched_off(as_alice, job, web, settings):
    settings.PORTS_PORT = 0

    page = as_alice.get(f"/jobs/{job.pk}/?tab=ports").content.decode()
    opened = as_alice.post(f"/jobs/{job.pk}/ports/web/open/")

    assert 'id="h-ports"' not in page
    assert opened.status_code == 409


def test_port_api_publishes_lists_opens_and_withdraws(api, alice, job):
    secret = tokens.issue(user=alice, name="script")[1]
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    base = f"/api/v1/jobs/{job.pk}/ports/"

    made = api.post(base, {"port": 40_005, "name": "board"}, format="json")
    listed, everywhere = api.get(base).json(), api.get("/api/v1/ports/").json()["results"]
    opened = api.post(f"{base}board/open/")
    gone = api.delete(f"{base}board/")

    assert (made.status_code, opened.status_code, gone.status_code) == (201, 200, 204)
    assert listed == everywhere == [made.json()]
    assert made.json()["address"] == f"http://testserver:8001/jobs/{job.pk}/board/"
    assert opened.json()["url"].startswith(f"{made.json()['address']}_enter?ticket=")
    assert opened.json()["expires_in_s"] == 30
    assert api.get(base).json() == []


def test_panel_shows_a_job_without_ports_how_to_publish(as_alice, job):
    page = as_alice.get(f"/jobs/{job.pk}/?tab=ports").content.decode()

    assert 'id="h-ports"' in page
    assert "Publish the port of a program in the job to open it in the" in page


def test_admissions_that_are_over_are_deleted(as_alice, web):
    for _ in range(2):
        as_alice.post(f"/jobs/{web.job_id}/ports/web/open/")
    Admission.objects.filter(pk=Admission.objects.first().pk).update(expires_at=now() - timedelta(seconds=1))

    admissions.sweep()

    assert Admission.objects.count() == 1


@pytest.mark.sockets("a web server that begins late")
def test_opening_waits_for_a_web_server_that_was_just_started(settings):
    with socket.create_server(("127.0.0.1", 0)) as found:
        settings.PORTS_PORT = found.getsockname()[1]
    assert not port_access.await_origin(0.3)

    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", settings.PORTS_PORT))
        begun = time.monotonic()
        threading.Timer(0.5, server.listen).start()

        assert port_access.await_origin(10)
        assert time.monotonic() - begun >= 0.4
