"""Told once, delivered once, never to an address of our own network."""

from __future__ import annotations

import email
import email.policy
import http.client
import json
import socket
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import Delivery, Notification
from accounts.services import notify, outbox
from aiplatform.lib import outbound
from aiplatform.lib.wording import message, verbatim
from tests.cases import case_table
from tests.conftest import signed_in
from tests.factories import work
from tests.fakes import receivers
from workers.execution import results

pytestmark = pytest.mark.sockets("a mail server and a receiver of its own")

SMTP = "django.core.mail.backends.smtp.EmailBackend"


@pytest.fixture(autouse=True)
def _rested(monkeypatch):
    monkeypatch.setattr(outbox, "_mail_rest", {"until": float("-inf")})


@pytest.fixture
def mailbox(settings):
    with receivers.mail_server() as box:
        settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = SMTP, "127.0.0.1", box.port
        settings.EMAIL_USE_TLS = False
        settings.SITE_URL = "https://ai.example.org"
        yield box


@pytest.fixture
def hook(settings):
    with receivers.web_server() as server:
        settings.WEBHOOK_ALLOWED = ["127.0.0.0/8"]
        yield server


def tell(user, key="job-1-1", kind="failed", **more):
    return notify.notify(
        user,
        kind,
        title=verbatim("Training “a” failed"),
        text=verbatim("Exit code 1."),
        url="/jobs/1/",
        key=key,
        **more,
    )


@pytest.mark.postgres
def test_notification_is_stored_and_mailed_once_per_key(alice, mailbox):
    alice.email = "alice@example.org"
    alice.save()

    told = [tell(alice), tell(alice)]
    sent = [outbox.sweep(), outbox.sweep()]

    assert [bool(row) for row in told] == [True, False]
    assert sent == [1, 0]
    [(recipients, raw)] = mailbox.arrived
    message = email.message_from_string(raw, policy=email.policy.default)
    assert recipients == ["alice@example.org"]
    assert message["Subject"] == "[aiplatform] Training “a” failed"
    assert "https://ai.example.org/jobs/1/" in message.get_content()
    assert message["Auto-Submitted"] == "auto-generated"


def test_k01_mail_sender_cleans_a_line_break_in_a_name_and_sends(alice, mailbox):
    alice.email = "alice@example.org"
    alice.save()

    notify.notify(alice, "failed", title=verbatim("Training “a\r\nBcc: eve@example.org” failed"), key="job-9-1")
    sent = outbox.sweep()

    assert sent == 1
    [(recipients, raw)] = mailbox.arrived
    message = email.message_from_string(raw, policy=email.policy.default)
    assert recipients == ["alice@example.org"]
    assert message["Bcc"] is None
    assert message["Subject"].strip() == "[aiplatform] Training “a Bcc: eve@example.org” failed"


@pytest.mark.postgres
def test_outbox_with_two_senders_sends_one_message(alice, mailbox):
    alice.email = "alice@example.org"
    alice.save()
    tell(alice)
    row = Delivery.objects.get()

    Delivery.objects.filter(pk=row.pk).update(
        state="sending", holder="another", renewed_at=now()
    )  # another process is at it
    assert not outbox.deliver(row.pk)
    assert mailbox.arrived == []

    Delivery.objects.filter(pk=row.pk).update(renewed_at=now() - timedelta(minutes=3))  # … and died
    assert outbox.sweep() == 1
    assert len(mailbox.arrived) == 1
    assert f"delivery-{row.pk}-" in mailbox.arrived[0][1]


def test_outbox_retries_an_absent_mail_server_with_growing_delays(alice, settings):
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = SMTP, "127.0.0.1", 9
    settings.EMAIL_USE_TLS = False
    alice.email = "alice@example.org"
    alice.save()
    tell(alice)
    pauses = []

    for _attempt in range(len(outbox.BACK_OFF_S) + 1):
        Delivery.objects.update(not_before=now())
        outbox._mail_rest["until"] = 0.0
        outbox.sweep()
        row = Delivery.objects.get()
        pauses.append(round((row.not_before - now()).total_seconds(), -1) if row.state == "waiting" else None)

    assert pauses == [*map(float, outbox.BACK_OFF_S), None]
    assert row.state == "failed"
    assert "refused" in str(row.error)


def test_outbox_gives_up_an_address_refused_for_good(alice, mailbox):
    mailbox.refuse = lambda address: "550 No such user"
    alice.email = "gone@example.org"
    alice.save()
    tell(alice)

    outbox.sweep()

    assert Delivery.objects.get().state == "failed"


def test_webhook_is_signed_over_time_and_body(alice, hook):
    kept = notify.choose(user=alice, mail=[], webhook=["failed"], webhook_url=hook.url)
    tell(alice)
    tell(alice, kind="finished")  # not chosen

    assert outbox.sweep() == 1

    [(headers, body)] = hook.arrived
    assert headers["X-Aip-Signature"] == outbox.signature(kept.webhook_secret, headers["X-Aip-Timestamp"], body)
    assert json.loads(body)["kind"] == "failed"
    assert headers["X-Aip-Delivery"] == json.loads(body)["id"]
    assert Delivery.objects.get().secret == ""


@pytest.mark.parametrize(("status", "state"), [(500, "waiting"), (429, "waiting"), (404, "failed"), (302, "failed")])
def test_k02_webhook_answers_are_judged_and_redirects_not_followed(alice, hook, status, state):
    """A redirect is not followed, wherever it leads."""
    notify.choose(user=alice, mail=[], webhook=["failed"], webhook_url=hook.url)
    hook.status, hook.location = status, hook.url.replace("/hook", "/elsewhere")
    tell(alice)

    outbox.sweep()

    assert Delivery.objects.get().state == state
    assert len(hook.arrived) == 1


def test_webhook_receiver_that_fails_is_tried_once_per_delay(alice, bob, hook):
    """A thousand messages for an address that hangs cost one attempt, and hold up nobody else's."""
    hook.status = 503
    notify.choose(user=alice, mail=[], webhook=["failed"], webhook_url=hook.url)
    for number in range(5):
        tell(alice, key=str(number))

    outbox.sweep()
    outbox.sweep()

    assert len(hook.arrived) == 1
    assert sorted(Delivery.objects.values_list("attempts", flat=True)) == [0, 0, 0, 0, 1]
    hook.status = 200
    Delivery.objects.update(not_before=now())
    assert outbox.sweep() == 5


def test_outbox_leaves_a_mail_server_that_does_not_answer_for_a_moment(alice, settings):
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = SMTP, "127.0.0.1", 9
    settings.EMAIL_USE_TLS = False
    alice.email = "alice@example.org"
    alice.save()
    for number in range(3):
        tell(alice, key=str(number))

    outbox.sweep()

    assert sorted(Delivery.objects.values_list("attempts", flat=True)) == [0, 0, 1]


@case_table(
    "url",
    [
        "http://127.0.0.1/", "http://localhost:6379/", "http://[::1]/", "http://0.0.0.0/", "http://169.254.169.254/latest/",
        "http://10.0.0.5/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://[fd00::1]/",
        "http://[fe80::1]/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
        "http://224.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://127.1/", "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x", "http://user:secret@198.51.100.7/", "http:///x", "https://example.org\r\nX: y/",
        "ftp://example.org/", "//example.org/", "http://[::1", "http://1.1.1.1:99999/",
    ],
)  # fmt: skip
def test_k02_webhook_into_our_own_network_is_refused(alice, settings, url):
    settings.WEBHOOK_ALLOWED = []
    with pytest.raises((outbound.ForbiddenAddress, OSError)) as caught:
        outbound.post(url, b"{}", {})

    assert not isinstance(caught.value, ConnectionError)
    with pytest.raises(outbound.ForbiddenAddress):
        outbound.resolve(url)


def test_k02_webhook_name_that_changes_its_address_is_not_followed(hook, monkeypatch):
    """Judged once, connected to what was judged: the second answer of the name is never asked for."""
    port = int(hook.url.rsplit(":", 1)[1].split("/")[0])
    answers = iter(["8.8.8.8", "127.0.0.1"])
    asked, went = [], []

    def getaddrinfo(host, number, *args, **kwargs):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), number))]

    def create_connection(address, *args, **kwargs):
        went.append(address)
        raise OSError("no way there")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket, "create_connection", create_connection)

    with pytest.raises(OSError, match="no way there"):
        outbound.post(f"http://rebinding.example:{port}/", b"{}", {})

    assert (asked, went) == (["rebinding.example"], [("8.8.8.8", port)])


def test_k02_webhook_answer_that_never_ends_is_cut():
    """One byte now and then keeps every single read alive; the whole is bounded anyway."""
    server, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip():
        line, _peer = server.accept()
        with line, suppress(OSError):
            line.sendall(b"HTTP/1.1 2")
            while not over.wait(0.05):
                line.sendall(b"0")

    thread = threading.Thread(target=drip)
    thread.start()
    begun = time.monotonic()
    try:
        with pytest.raises((OSError, http.client.HTTPException)):
            outbound.post(
                f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {}, allowed=["127.0.0.1"], timeout_s=0.3
            )
    finally:
        over.set()
        thread.join()
        server.close()

    assert time.monotonic() - begun < 5


def test_notification_of_a_job_end_reaches_the_owner_once(alice, cluster):
    work.node()
    for name, columns in {
        "good": {"state": "succeeded"},
        "bad": {"state": "failed", "reason": "user_code"},
        "mine": {"state": "stopped", "reason": "owner"},
        "theirs": {"state": "stopped", "reason": "operator", "message": message("job.reason", reason="operator")},
        "again": {"state": "queued", "attempt_number": 1, "reason": "preempted"},
    }.items():
        job = work.job(alice, cluster, name=name, **columns)
        job.attempts.update(ended_at=now(), reason=columns.get("reason", ""))
        results.publish(job.pk)
        job.published_attempt = 0  # a crash before it was recorded
        job.save()
        results.publish(job.pk)

    told = [(row.kind, str(row.title), str(row.text)) for row in Notification.objects.order_by("pk")]

    assert told == [
        ("finished", "Custom job “good” completed", ""),
        ("failed", "Custom job “bad” failed", ""),
        ("failed", "Custom job “theirs” was stopped", "Stopped by an administrator"),
        ("preempted", "Custom job “again” was preempted and is queued again", ""),
    ]


def test_notification_bell_counts_and_opening_reads(alice, bob, as_alice):
    row = tell(alice)
    tell(bob)

    assert "1 unread notification" in as_alice.get("/account/").content.decode()
    assert as_alice.get(f"/notifications/{row.pk}/").url == "/jobs/1/"
    assert as_alice.get("/notifications/bell/").json()["unread"] == 0
    assert signed_in(bob).get(f"/notifications/{row.pk}/").status_code == 404
    assert notify.unread(bob) == 1


def test_notification_link_never_leads_away(alice, as_alice):
    for url in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        row = notify.notify(alice, "quota", title=verbatim("x"), url=url, key=url)

        assert row.url == ""


def test_notification_choices_are_set_by_page_and_api(alice, api, as_alice, hook):
    sent = {"mail-failed": "on", "webhook-failed": "on", "webhook_url": hook.url}

    assert as_alice.post("/account/notifications/", sent).status_code == 302
    answer = api.get("/api/v1/me/notifications/").json()
    assert (answer["mail"], answer["webhook"], answer["webhook_url"]) == (["failed"], ["failed"], hook.url)
    assert len(answer["webhook_secret"]) == 40
    assert api.patch("/api/v1/me/notifications/", {"mail": []}, format="json").json()["webhook"] == ["failed"]

    refused = as_alice.post("/account/notifications/", {**sent, "webhook_url": "http://10.0.0.1/"})
    assert "inside this network" in refused.context["form"].errors["webhook_url"][0]
    assert api.patch("/api/v1/me/notifications/", {"webhook_url": "http://10.0.0.1/"}).status_code == 400


def test_notification_test_button_sends_at_once(alice, as_alice, mailbox):
    alice.email = "alice@example.org"
    alice.save()

    as_alice.post("/account/notifications/test/")
    outbox.sweep()

    assert "Test notification" in mailbox.arrived[0][1]


def test_notification_api_lists_own_and_marks_read(alice, bob, api):
    mine, other = tell(alice), tell(bob)

    assert [row["id"] for row in api.get("/api/v1/notifications/?unread=1").json()["results"]] == [mine.pk]
    assert api.post(f"/api/v1/notifications/{other.pk}/read/").status_code == 404
    assert api.post("/api/v1/notifications/read-all/").json() == {"marked": 1}
    assert api.get("/api/v1/notifications/?unread=1").json()["results"] == []


def test_k02_outbox_address_that_cannot_be_reached_holds_up_nobody(alice, bob, hook, settings):
    notify.choose(user=alice, mail=[], webhook=["failed"], webhook_url=f"{hook.url}/caf\u00e9?q=\u4e2d")
    notify.choose(user=bob, mail=[], webhook=["failed"], webhook_url=hook.url)
    tell(alice)
    tell(bob)
    Delivery.objects.update(state=Delivery.State.WAITING, not_before=now())

    outbox.sweep()

    assert set(Delivery.objects.values_list("state", flat=True)) == {Delivery.State.SENT}


def test_k02_outbox_gives_up_what_cannot_be_written(alice, hook, monkeypatch):
    notify.choose(user=alice, mail=[], webhook=["failed"], webhook_url=hook.url)
    monkeypatch.setattr(outbound, "post", lambda *args, **more: "\ud800".encode())
    tell(alice)
    Delivery.objects.update(state=Delivery.State.WAITING, not_before=now())

    outbox.sweep()

    assert Delivery.objects.get().state == Delivery.State.FAILED
