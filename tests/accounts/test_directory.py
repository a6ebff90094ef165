"""Sign-in by LDAP, against the library's own stand-in for a directory."""

from __future__ import annotations

import ssl

import ldap3
import pytest
from django.test import Client

from accounts.access.permissions import SYSTEM_ADMIN
from accounts.models import AuditEntry, Identity, User
from accounts.services import directory, registration
from tests.factories import people as cast

pytestmark = [pytest.mark.postgres, pytest.mark.sockets("a directory that is not there")]
BASE = "ou=people,dc=lab"
OPS = "cn=ops,dc=lab"
RIGHT = "seven green boats"


@pytest.fixture
def there(db, settings, monkeypatch):
    """A directory with Grace and Ada; `add` makes more people."""
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, "accounts.sign_in.backends.DirectoryBackend"]
    settings.LDAP_URL, settings.LDAP_BASE, settings.LDAP_SECURITY = "ldap://directory.example", BASE, "none"
    settings.LDAP_BIND_DN, settings.LDAP_BIND_PASSWORD = "cn=reader,dc=lab", "reads"
    server = ldap3.Server("directory.example", get_info=ldap3.NONE)
    monkeypatch.setattr(directory, "_server", lambda: server)
    monkeypatch.setattr(directory, "STRATEGY", ldap3.MOCK_SYNC)
    writer = ldap3.Connection(server, client_strategy=ldap3.MOCK_SYNC)
    writer.open()

    def add(uid: str, **more: object) -> str:
        dn = f"uid={uid},{BASE}"
        given = {
            "uid": uid,
            "cn": uid.title(),
            "mail": f"{uid}@lab.example",
            "entryUUID": f"id-{uid}",
            "userPassword": RIGHT,
        }
        writer.strategy.add_entry(dn, given | more)
        return dn

    writer.strategy.add_entry("cn=reader,dc=lab", {"cn": "reader", "userPassword": "reads"})
    add("grace", cn="Grace Hopper", memberOf=[OPS, "cn=other,dc=lab"])
    add("ada")
    add.writer = writer
    return add


def sign_in(client, username="grace", password=RIGHT):
    return client.post("/login/", {"username": username, "password": password})


def said(answer) -> str:
    return " ".join(answer.context["form"].non_field_errors())


def test_ldap_sign_in_adds_a_new_person_and_refreshes_them_next_time(there, client):
    first = sign_in(client)
    there.writer.modify(f"uid=grace,{BASE}", {"mail": [(ldap3.MODIFY_REPLACE, ["new@lab.example"])]})
    again = sign_in(Client())

    grace = User.objects.get()
    assert (first.status_code, again.status_code) == (302, 302)
    assert (grace.username, grace.nickname, grace.email) == ("grace", "Grace Hopper", "new@lab.example")
    assert not grace.has_usable_password()
    assert (Identity.objects.get().issuer, Identity.objects.get().subject) == ("ldap://directory.example", "id-grace")
    assert AuditEntry.objects.filter(verb="signed_in").first().facts == {"way": "ldap"}


@pytest.mark.parametrize("password", ["", "\x00", "x" * 200])
def test_ldap_sign_in_never_sends_an_empty_password(there, password, monkeypatch):
    """It would be a bind of nobody in particular, which a directory welcomes."""
    monkeypatch.setattr(ldap3.Connection, "bind", lambda self: pytest.fail("asked"))

    assert directory.sign_in("grace", password) is None


def test_ldap_sign_in_refuses_a_wrong_password(there, client):
    answer = sign_in(client, password="wrong")

    assert answer.status_code == 422
    assert said(answer) == "Unknown username or wrong password."
    assert not User.objects.exists()


@pytest.mark.parametrize("typed", ["*", "gr*", "grace)(uid=*", "*)(|(uid=*", "grace\\2a", "(", "nobody", "ada)(&"])
def test_ldap_sign_in_never_reads_a_name_as_a_filter(there, client, typed):
    answer = sign_in(client, typed)

    assert answer.status_code == 422
    assert said(answer) == "Unknown username or wrong password."
    assert not User.objects.exists()


def test_ldap_sign_in_says_when_the_directory_is_away_and_local_works(there, alice, client, monkeypatch):
    monkeypatch.setattr(directory, "_server", lambda: ldap3.Server("127.0.0.1", port=9, connect_timeout=1))
    monkeypatch.setattr(directory, "STRATEGY", ldap3.SYNC)

    away = sign_in(client)
    token = client.post("/api/v1/auth/token/", {"username": "grace", "password": RIGHT}, "application/json")
    local = sign_in(client, "alice", "correct horse")

    assert (away.status_code, token.status_code) == (422, 401)
    assert "The user directory does not respond." in said(away)
    assert "The user directory does not respond." in token.json()["detail"]
    assert local.status_code == 302


def test_a02_ldap_sign_in_counts_guesses_and_asks_nobody_during_the_lockout(there, client, monkeypatch):
    answers = [sign_in(client, password="wrong").status_code for _ in range(6)]
    monkeypatch.setattr(directory, "sign_in", lambda *asked: pytest.fail("asked during the pause"))

    right = sign_in(client)

    assert answers == [422] * 5 + [429]
    assert right.status_code == 429


def test_ldap_sign_in_takes_over_no_account_of_the_same_name_by_default(there, client, settings):
    local = cast.user("grace")

    refused = sign_in(client)
    settings.LDAP_LINK_BY_NAME = True
    let_in = sign_in(client)

    assert "belongs to another account" in said(refused)
    assert let_in.status_code == 302
    assert Identity.objects.get().user == local
    assert AuditEntry.objects.filter(verb="identity_refused").count() == 1


def test_c05_ldap_sign_in_never_links_the_first_administrator_by_name(there, client, settings):
    settings.LDAP_LINK_BY_NAME = True
    User.objects.filter(pk=cast.user("grace", role=SYSTEM_ADMIN).pk).update(first=True)

    assert "belongs to another account" in said(sign_in(client))
    assert not Identity.objects.exists()


def test_ldap_sign_in_follows_registration_and_keeps_disabled_people_out(there, client, olga):
    registration.set_mode("closed", by=olga)
    closed = sign_in(client)
    registration.set_mode("approval", by=olga)
    asked = sign_in(client)
    User.objects.filter(username="grace").update(awaiting=False)
    disabled = sign_in(client)

    assert "registration is closed" in said(closed)
    assert "approved" in said(asked)
    assert "disabled" in said(disabled)


def test_ldap_sign_in_sets_roles_by_groups_of_the_directory(there, client, settings, olga):
    settings.LDAP_ROLES = {OPS: SYSTEM_ADMIN}

    sign_in(client)
    sign_in(Client(), "ada")

    assert User.objects.get(username="grace").can("people.manage")
    assert not User.objects.get(username="ada").actions()


def test_ldap_sign_in_refuses_two_people_of_one_name(there, client, settings):
    settings.LDAP_FILTER = "(|(uid={username})(mail={username}))"
    there("twin", mail="grace")

    assert sign_in(client).status_code == 422


def test_ldap_connection_is_encrypted_and_verifies_the_directory(settings):
    settings.LDAP_URL = "ldaps://directory.example"

    server = directory._server()

    assert server.ssl
    assert server.tls.validate == ssl.CERT_REQUIRED


def test_ldap_starttls_comes_before_any_password(there, client, settings, monkeypatch):
    settings.LDAP_SECURITY = "starttls"
    order = []
    monkeypatch.setattr(ldap3.Connection, "start_tls", lambda self: order.append("tls"))
    bind = ldap3.Connection.bind
    monkeypatch.setattr(ldap3.Connection, "bind", lambda self: order.append("bind") or bind(self))

    sign_in(client)

    assert order == ["tls", "bind", "tls", "bind"]
