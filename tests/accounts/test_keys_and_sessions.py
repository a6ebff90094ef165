"""Sessions seen and ended, SSH keys read to the last byte, registration rules."""

from __future__ import annotations

import base64
import struct
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import Notification, SshKey, User, UserSession
from accounts.services import links, passwords, people, registration, sessions, ssh_keys
from aiplatform.lib.errors import DomainError, Invalid
from tests.cases import case_table
from tests.conftest import signed_in

pytestmark = pytest.mark.postgres


def blob(*fields: bytes) -> str:
    return base64.b64encode(b"".join(struct.pack(">I", len(one)) + one for one in fields)).decode()


ED = "ssh-ed25519 " + blob(b"ssh-ed25519", bytes(range(32)))


def rsa(bits: int) -> str:
    return "ssh-rsa " + blob(b"ssh-rsa", b"\x01\x00\x01", b"\x00" + (1 << (bits - 1)).to_bytes(bits // 8, "big"))


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/130 Safari/537.36 Edg/130", "Edge on Windows"),
        ("curl/8.5.0", "curl"),
        ("", ""),
    ],
)
def test_sessions_device_describes_a_browser_in_words(agent, words):
    assert sessions.device(agent) == words


def test_sessions_are_listed_and_ended_one_by_one(alice):
    here = Client(HTTP_USER_AGENT="Mozilla/5.0 (X11; Linux) Firefox/128.0")
    there = Client(REMOTE_ADDR="10.0.0.7")
    for client in (here, there):
        client.post("/login/", {"username": "alice", "password": "correct horse"})

    rows = here.get("/account/sessions/").context["rows"]
    other = next(row for row in rows if row.address == "10.0.0.7")
    here.post(f"/account/sessions/{other.pk}/end/")

    assert {row.device for row in rows} >= {"Firefox on Linux"}
    assert there.get("/account/").status_code == 302
    assert here.get("/account/").status_code == 200
    assert UserSession.objects.count() == 1


def test_b02_sessions_of_somebody_else_cannot_be_ended(alice, as_alice, bob):
    row = UserSession.objects.get(user=alice)

    assert signed_in(bob).post(f"/account/sessions/{row.pk}/end/").status_code == 404
    assert as_alice.get("/account/").status_code == 200


def test_a06_password_change_leaves_this_session_only(alice, as_alice):
    elsewhere = signed_in(alice)
    new = "another long phrase"

    as_alice.post("/account/password/", {"current": "correct horse", "password": new, "again": new})

    assert [row.session_key for row in sessions.list_live(alice)] == [as_alice.session.session_key]
    assert elsewhere.get("/").status_code == 302


def test_session_is_written_once_a_minute(alice, as_alice, monkeypatch):
    from datetime import timedelta

    from django.utils.timezone import now

    before = UserSession.objects.get().seen_at
    as_alice.get("/account/")
    assert UserSession.objects.get().seen_at == before

    monkeypatch.setattr(sessions, "now", lambda: now() + timedelta(minutes=2))
    as_alice.get("/account/")
    assert UserSession.objects.get().seen_at > before


def test_ssh_keys_are_kept_by_fingerprint_and_without_comment(alice, as_alice):
    as_alice.post("/account/ssh-keys/", {"name": "laptop", "line": ED + " alice@laptop"})

    key = SshKey.objects.get()
    out = StringIO()
    call_command("authorized_keys", "alice", stdout=out)
    assert key.line == ED
    assert key.fingerprint.startswith("SHA256:")
    assert out.getvalue() == f"{ED} alice\n"

    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert ssh_keys.authorized("alice") == []


@case_table(
    "line",
    [
        "",
        "ssh-ed25519",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nx",
        ED + "\n" + ED,
        'command="rm -rf /" ' + ED,
        "ssh-dss " + blob(b"ssh-dss", b"1", b"2", b"3", b"4"),
        "ssh-ed25519 " + blob(b"ssh-ed25519", b"short"),
        "ssh-ed25519 " + blob(b"ssh-rsa", bytes(32)),
        "ssh-ed25519 " + blob(b"ssh-ed25519", bytes(32), b"more"),
        "ssh-ed25519 !!!!",
        "ssh-ed25519 " + base64.b64encode(b"\xff\xff\xff\xff").decode(),
        rsa(1024),
    ],
)
def test_ssh_keys_read_refuses_what_is_no_good_public_key(line):
    with pytest.raises(Invalid):
        ssh_keys.parse(line)


def test_ssh_keys_read_accepts_a_strong_rsa_key():
    assert ssh_keys.parse(rsa(4096))[0] == "ssh-rsa"


def test_ssh_key_names_one_person(alice, bob):
    ssh_keys.add(user=alice, name="laptop", line=ED)

    with pytest.raises(DomainError) as refusal:
        ssh_keys.add(user=bob, name="mine", line=ED)

    assert "alice" not in refusal.value.message


def test_registration_is_open_with_approval_or_closed(olga, as_olga, client):
    form = {"username": "carol", "nickname": "C", "password": "a long enough phrase"}
    as_olga.post("/people/registration/", {"registration": "approval"})
    client.post("/register/", form)
    carol = User.objects.get(username="carol")
    sign_in = {"username": "carol", "password": form["password"]}

    registration.notify_administrators()
    registration.notify_administrators()
    assert [str(row.title) for row in Notification.objects.filter(user=olga)] == ["carol requests an account"]
    assert carol.state == "awaiting"
    assert client.post("/login/", sign_in).status_code == 422
    as_olga.post(f"/people/{carol.pk}/active/", {"active": "1"})
    assert client.post("/login/", sign_in).status_code == 302

    as_olga.post("/people/registration/", {"registration": "closed"})
    assert Client().get("/register/").status_code == 404
    assert b"/register/" not in Client().get("/login/").content


def test_registration_stays_closed_by_the_environment(olga, settings):
    registration.set_mode("open", by=olga)
    settings.REGISTRATION_OPEN = False

    assert registration.mode() == "closed"


@pytest.mark.parametrize("path", ["/people/registration/"])
def test_registration_rules_are_for_administrators(path, as_alice):
    assert as_alice.get(path).status_code == as_alice.post(path, {"registration": "open"}).status_code == 403


def test_a05_asgi_find_user_counts_token_guesses(alice, client):
    from accounts.sign_in.asgi import find_user

    scope = {"method": "GET", "path": "/uploads/tus/", "client": ("127.0.0.1", 1), "type": "http"}
    for n in range(6):
        assert find_user(scope | {"headers": [(b"authorization", f"Bearer aip_{n}".encode())]}) is None

    answer = client.get("/api/v1/me/", headers={"Authorization": "Bearer aip_x"})

    assert answer.status_code == 429


def test_session_of_a_disabled_account_does_not_return_with_the_account(alice, olga):
    browser = signed_in(alice)

    people.set_active(user=alice, active=False, by=olga)
    people.set_active(user=alice, active=True, by=olga)

    assert browser.get("/account/").status_code == 302
    assert not UserSession.objects.filter(user=alice).exists()


def test_password_link_ends_when_the_password_changes(alice, olga):
    path = links.issue_password_link(user=alice, by=olga)

    passwords.change(user=alice, password="another horse battery", by=alice)

    assert Client().get(path).status_code == 410


def test_ssh_key_without_a_name_is_called_by_its_comment(as_alice, alice):
    as_alice.post("/account/ssh-keys/", {"name": "", "line": ED + " alice@laptop"})

    assert alice.ssh_keys.get().name == "alice@laptop"
