"""The way in: sign in, lockout, register, the first administrator, one-time links."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from time import time

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils.timezone import now

from accounts.access import clusters
from accounts.models import ApiToken, OneTimeLink, User
from accounts.services import links, passwords, tokens
from accounts.sign_in import proof
from accounts.views import sign_in as sign_in_page
from aiplatform.lib.errors import DomainError
from tests.conftest import signed_in

pytestmark = pytest.mark.postgres

RIGHT, WRONG = "correct horse", "wrong horse"


def sign_in(client, username="alice", password=RIGHT, **more):
    return client.post("/login/", {"username": username, "password": password, **more})


def test_a01_sign_in_of_a_fresh_platform_has_no_account_to_guess(db, client):
    for name, password in [("admin", "admin"), ("admin", "123456"), ("admin", "password"), ("root", "root")]:
        assert sign_in(client, name, password).status_code == 422

    assert User.objects.count() == 0


def test_a01_console_link_makes_one_administrator_once(db, client):
    out = StringIO()
    call_command("first_admin_link", base_url="https://ai.example.org", stdout=out)
    address = out.getvalue().strip()
    assert address.startswith("https://ai.example.org/welcome/")
    path = address.removeprefix("https://ai.example.org")
    form = {"username": "olga", "password": "a long enough phrase", "again": "a long enough phrase"}

    page = client.get(path)
    made = client.post(path, form)
    second = Client().post(path, form | {"username": "mallory"})

    assert page.status_code == 200
    assert made.status_code == 302
    assert User.objects.get().can("people.manage")
    assert second.status_code == 410
    assert client.get("/people/").status_code == 200
    with pytest.raises(CommandError):
        call_command("first_admin_link", stdout=StringIO())


def test_first_administrator_can_start_work_at_once(cluster, client):
    form = {"username": "olga", "password": "a long enough phrase", "again": "a long enough phrase"}

    client.post(links.issue_first_admin_link(), form)

    assert clusters.ids_for_user(User.objects.get(username="olga")) == [cluster.pk]
    assert client.get("/").context["cluster"].ask == []


def test_a01_console_link_stays_usable_after_a_weak_password(db, client):
    path = links.issue_first_admin_link()

    answer = client.post(path, {"username": "olga", "password": "12345678", "again": "12345678"})

    assert answer.status_code == 422
    assert client.get(path).status_code == 200


def test_console_link_ends_with_a_newer_one(db, client):
    older, newer = links.issue_first_admin_link(), links.issue_first_admin_link()

    assert client.get(older).status_code == 410
    assert client.get(newer).status_code == 200


def test_console_link_too_old_is_refused(db, client):
    path = links.issue_first_admin_link()
    OneTimeLink.objects.update(expires_at=now() - timedelta(seconds=1))

    assert client.get(path).status_code == 410


def test_a02_sign_in_locks_the_seventh_try_even_with_the_right_password(alice, bob, client):
    answers = [sign_in(client, password=WRONG) for _ in range(7)]
    right = sign_in(client)
    other = sign_in(Client(REMOTE_ADDR="10.0.0.9"), "bob")

    assert [answer.status_code for answer in answers] == [422] * 5 + [429] * 2
    assert right.status_code == 429
    assert int(right["Retry-After"]) >= 60
    assert "Try again in 3 minutes" in right.content.decode()
    assert other.status_code == 302


def test_a02_sign_in_api_has_the_same_counter(alice, client):
    ask = {"username": "alice", "password": WRONG}

    answers = [client.post("/api/v1/auth/token/", ask, content_type="application/json") for _ in range(6)]
    page = sign_in(client)

    assert [answer.status_code for answer in answers] == [401] * 5 + [429]
    assert answers[-1].json()["code"] == "too_many_attempts"
    assert page.status_code == 429


def test_a03_sign_in_locks_one_address_trying_many_names(db, client):
    answers = [sign_in(client, f"name{n}", WRONG).status_code for n in range(32)]

    assert answers[:29] == [422] * 29
    assert answers[-1] == 429


def test_a04_sign_in_answers_known_and_unknown_names_alike(alice, client):
    known, unknown = sign_in(client, "alice", WRONG), sign_in(client, "nobody", WRONG)

    assert known.status_code == unknown.status_code == 422
    assert known.context["form"].errors == unknown.context["form"].errors


def test_a04_registration_of_a_taken_name_looks_like_one_of_a_free_name(alice, client):
    form = {"nickname": "A", "password": "a long enough phrase"}

    taken = client.post("/register/", form | {"username": "Alice"})
    free = client.post("/register/", form | {"username": "carol"})

    assert (taken.status_code, taken["Location"]) == (free.status_code, free["Location"]) == (302, "/login/")
    assert User.objects.filter(username__iexact="alice").count() == 1
    assert not User.objects.get(username="carol").actions()


def test_registration_can_be_closed(db, client, settings):
    settings.REGISTRATION_OPEN = False

    assert client.get("/register/").status_code == 404


def test_a05_api_token_guesses_are_counted_and_a_real_one_still_works(alice, client):
    _token, secret = tokens.issue(user=alice, name="laptop")

    codes = [client.get("/api/v1/me/", headers={"Authorization": f"Bearer aip_{n}"}).status_code for n in range(7)]
    real = client.get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"})

    assert codes[:5] == [401] * 5
    assert codes[-1] == 429
    assert real.status_code == 200


def test_a06_sign_in_changes_the_session_id(alice, client):
    client.get("/login/")
    client.session["mark"] = 1
    session = client.session
    session["mark"] = 1
    session.save()
    before = session.session_key

    sign_in(client)

    assert client.session.session_key != before


def test_a06_password_change_ends_other_sessions_and_tokens(alice, as_alice):
    elsewhere = signed_in(alice)
    tokens.issue(user=alice, name="laptop")
    new = "another long phrase"

    answer = as_alice.post("/account/password/", {"current": RIGHT, "password": new, "again": new})

    assert answer.status_code == 302
    assert as_alice.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert not ApiToken.objects.exists()


def test_a06_sign_in_of_a_disabled_account_ends_at_once(alice, as_alice, as_olga, client):
    _token, secret = tokens.issue(user=alice, name="laptop")

    as_olga.post(f"/people/{alice.pk}/active/", {"active": "0"})

    assert as_alice.get("/").status_code == 302
    assert client.get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert sign_in(client).status_code == 422


@pytest.mark.parametrize(
    "next_", ["//e.vil", "https:e.vil", "/\\e.vil", "https://e.vil/", "javascript:alert(1)", "/%2f%2fe.vil"]
)
def test_a08_sign_in_next_stays_on_this_site(alice, client, next_):
    answer = sign_in(client, next=next_)

    assert answer.status_code == 302
    assert answer["Location"] in {"/", "/%2f%2fe.vil"}  # the last is a path of our own, and a 404


def test_a09_password_link_works_once_and_only_for_its_person(alice, bob, as_olga, client):
    page = as_olga.post(f"/people/{alice.pk}/password-link/")
    path = "/set-password/" + page.content.decode().split("/set-password/")[1].split("/")[0] + "/"
    new = {"password": "another long phrase", "again": "another long phrase"}

    first, second = client.post(path, new), Client().post(path, new)

    assert (first.status_code, second.status_code) == (302, 410)
    assert client.get("/api/v1/me/").json()["username"] == "alice"
    alice.refresh_from_db()
    assert alice.check_password("another long phrase")


def test_a09_password_link_of_a_disabled_account_is_refused(alice, client):
    path = links.issue_password_link(user=alice, by=None)
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert client.get(path).status_code == 410


def test_first_password_must_be_changed_before_anything_else(alice, client):
    passwords.change(user=alice, password="a first phrase", must_change=True)
    sign_in(client, password="a first phrase")

    page, api = client.get("/"), client.get("/api/v1/me/")
    token = Client().post(
        "/api/v1/auth/token/", {"username": "alice", "password": "a first phrase"}, "application/json"
    )

    assert page["Location"] == "/account/password/"
    assert (api.status_code, api.json()["code"]) == (403, "password_change_needed")
    assert token.status_code == 403


@pytest.fixture
def temporary(alice):
    passwords.change(user=alice, password="a first phrase", must_change=True)
    return alice


def test_first_password_is_not_asked_for_again_in_the_session_that_signed_in_with_it(temporary, client):
    sign_in(client, password="a first phrase")
    page = client.get("/account/password/")
    same = client.post("/account/password/", {"password": "a first phrase"})
    weak = client.post("/account/password/", {"password": "123"})
    done = client.post("/account/password/", {"password": "another long phrase"})

    assert list(page.context["form"].fields) == ["password"]
    assert "This is a temporary password. Set your own." in page.content.decode()
    assert same.context["form"].errors == {"password": ["This is the temporary password. Choose another one."]}
    assert set(weak.context["form"].errors) == {"password"}
    assert done.url == "/"
    temporary.refresh_from_db()
    assert temporary.check_password("another long phrase")
    assert not temporary.must_change_password
    assert client.get("/").status_code == 200
    assert list(client.get("/account/password/").context["form"].fields) == ["current", "password", "again"]
    assert client.post("/account/password/", {"password": "a third long phrase"}).status_code == 422


def test_first_password_is_asked_for_again_later_and_in_other_sessions(temporary, client, monkeypatch):
    sign_in(client, password="a first phrase")
    other = signed_in(temporary)
    monkeypatch.setattr(proof, "time", lambda: time() + proof.VALID_S)

    for browser in (client, other):
        page = browser.get("/account/password/")
        bare = browser.post("/account/password/", {"password": "another long phrase"})
        wrong = browser.post("/account/password/", {"current": "guess", "password": "another long phrase"})
        assert list(page.context["form"].fields) == ["current", "password"]
        assert (set(bare.context["form"].errors), set(wrong.context["form"].errors)) == ({"current"}, {"current"})
    right = {"current": "a first phrase", "password": "another long phrase"}
    assert client.post("/account/password/", right).status_code == 302


def test_first_password_of_one_person_proves_nothing_for_another(temporary, bob, client):
    sign_in(client, password="a first phrase")
    session = client.session
    proved = session[proof.KEY]
    passwords.change(user=bob, password="bobs first phrase", must_change=True)
    other = signed_in(bob)
    session = other.session
    session[proof.KEY] = proved
    session.save()

    assert proved["user"] == temporary.pk
    assert other.post("/account/password/", {"password": "another long phrase"}).status_code == 422


def test_sign_in_with_an_own_password_proves_nothing_later(alice, client):
    sign_in(client)
    User.objects.filter(pk=alice.pk).update(must_change_password=True)

    assert client.post("/account/password/", {"password": "another long phrase"}).status_code == 422


def test_passwords_check_refuses_weak_ones_with_reasons(alice):
    for weak in ("short", "password", "12345678"):
        with pytest.raises(DomainError):
            passwords.check(weak, alice)


def test_passwords_generate_makes_strong_and_different_ones():
    made = {passwords.generate() for _ in range(50)}

    assert len(made) == 50
    assert all(len(password.replace("-", "")) == passwords.LENGTH for password in made)


def test_pages_send_a_stranger_to_sign_in(db, client):
    answer = client.get("/people/")

    assert answer.status_code == 302
    assert answer["Location"] == "/login/?next=/people/"


def test_a11_pages_tell_an_account_without_rights_whom_to_ask(db):
    from tests.factories import people

    carol = signed_in(people.user("carol", role=None))

    page, api = carol.get("/"), carol.get("/api/v1/me/")

    assert page.status_code == api.status_code == 403
    assert "Ask an administrator" in page.content.decode()
    assert "Ask an administrator" in api.json()["detail"]
    assert api.json()["code"] == "no_rights"


def test_a03_registration_by_one_address_is_limited(db, client, monkeypatch):
    monkeypatch.setattr(sign_in_page, "REGISTRATIONS_PER_HOUR", 2)
    form = {"nickname": "A", "password": "a long enough phrase"}

    answers = [client.post("/register/", form | {"username": f"flood{n}"}).status_code for n in range(3)]
    other = Client(REMOTE_ADDR="10.0.0.9").post("/register/", form | {"username": "carol"})

    assert answers == [302, 302, 429]
    assert other.status_code == 302


def test_notification_test_messages_are_limited(alice, as_alice):
    answers = [as_alice.post("/account/notifications/test/").status_code for _ in range(11)]

    assert answers == [302] * 10 + [429]
