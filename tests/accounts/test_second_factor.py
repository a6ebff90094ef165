"""The second factor: asked for wherever one signs in, each code good once, guesses counted."""

from __future__ import annotations

from datetime import timedelta

import pyotp
import pytest
from django.test import Client

from accounts.models import AuditEntry, RecoveryCode, SecondFactor
from accounts.services import links, second_factor
from tests.conftest import signed_in

pytestmark = pytest.mark.postgres
RIGHT = "correct horse"


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    from django.utils.timezone import now

    class Clock:
        at = now()

        def __call__(self):
            return self.at

        def later(self, seconds=30):
            self.at += timedelta(seconds=seconds)

    held = Clock()
    monkeypatch.setattr(second_factor, "now", held)
    return held


@pytest.fixture
def factor(alice, clock):
    """Alice's phone and recovery codes, with the factor on."""
    phone = pyotp.TOTP(second_factor.start_setup(alice)[0])
    codes = second_factor.confirm(alice, phone.at(clock.at))
    clock.later()
    return phone, codes


def password(client, **more):
    return client.post("/login/", {"username": "alice", "password": RIGHT, **more})


def test_second_factor_is_switched_on_by_a_first_right_code(alice, as_alice, clock):
    page = as_alice.get("/account/second-factor/")
    phone = pyotp.TOTP(page.context["secret"])
    assert page.context["qr_code"].startswith("data:image/svg+xml")

    wrong = as_alice.post("/account/second-factor/", {"code": "000000"})
    assert (wrong.status_code, second_factor.is_on(alice)) == (422, False)
    page = as_alice.post("/account/second-factor/", {"code": phone.at(clock.at)})
    codes = page.context["codes"]

    assert second_factor.is_on(alice)
    assert all(code in page.content.decode() for code in codes)
    assert len(set(codes)) == 10
    assert all(len(code.replace("-", "")) == 16 for code in codes)


def test_second_factor_lets_nobody_in_by_a_password_alone(alice, client, factor, clock):
    phone, _codes = factor

    first = password(client, next="/account/")
    before = client.get("/account/")
    second = client.post("/login/code/", {"code": phone.at(clock.at)})

    assert first["Location"] == "/login/code/"
    assert before.status_code == 302
    assert second["Location"] == "/account/"
    assert client.get("/account/").status_code == 200


def test_second_factor_code_and_recovery_code_count_once(alice, factor, clock):
    phone, codes = factor
    code = phone.at(clock.at)

    answers = []
    for typed in (code, code, codes[0], codes[0], codes[1].upper()):
        client = Client()
        password(client)
        answers.append(client.post("/login/code/", {"code": typed}).status_code)

    assert answers == [302, 422, 302, 422, 302]
    assert AuditEntry.objects.filter(verb="recovery_code_used").count() == 2


def test_second_factor_takes_codes_half_a_minute_off_and_no_older_ones(alice, factor, clock):
    phone, _codes = factor
    clock.later(300)

    second_factor.check(alice, phone.at(clock.at - timedelta(seconds=30)))
    with pytest.raises(second_factor.WrongCode):
        second_factor.check(alice, phone.at(clock.at - timedelta(seconds=90)))


def test_a02_second_factor_counts_guessed_codes_like_guessed_passwords(alice, client, factor, clock):
    phone, _codes = factor
    password(client)

    answers = [client.post("/login/code/", {"code": "000000"}).status_code for _ in range(6)]
    right = client.post("/login/code/", {"code": phone.at(clock.at)})

    assert answers == [422] * 5 + [429]
    assert right.status_code == 429


def test_second_factor_is_required_by_every_other_way_to_sign_in(alice, client, factor, clock):
    _phone, codes = factor
    ask = {"username": "alice", "password": RIGHT}

    api = client.post("/api/v1/auth/token/", ask, "application/json")
    wrong = client.post("/api/v1/auth/token/", ask | {"code": "000000"}, "application/json")
    right = client.post("/api/v1/auth/token/", ask | {"code": codes[0]}, "application/json")
    new = {"password": "another long phrase", "again": "another long phrase"}
    link = Client()
    entered = link.post(links.issue_password_link(user=alice, by=None), new)

    assert (api.status_code, wrong.status_code, right.status_code) == (401, 401, 201)
    assert api.json()["code"] == wrong.json()["code"] == "second_factor_needed"
    assert entered["Location"] == "/login/code/"
    assert link.get("/").status_code == 302


def test_second_factor_step_ends_when_the_password_changes_meanwhile(alice, client, factor, clock):
    phone, _codes = factor
    password(client)
    alice.set_password("another long phrase")
    alice.save()

    assert client.post("/login/code/", {"code": phone.at(clock.at)})["Location"] == "/login/"


def test_second_factor_secret_stands_nowhere_in_the_database(alice, factor, clock):
    phone, codes = factor

    kept = [
        *SecondFactor.objects.values_list("nonce", flat=True),
        *RecoveryCode.objects.values_list("digest", flat=True),
    ]

    assert phone.secret not in kept
    assert not {code.replace("-", "") for code in codes} & set(kept)


def test_second_factor_is_switched_off_by_password_or_administrator(alice, as_alice, as_olga, bob, factor, clock):
    assert as_alice.post("/account/second-factor/", {"current": "wrong"}).status_code == 422
    assert signed_in(bob).post(f"/people/{alice.pk}/second-factor/").status_code == 403
    assert second_factor.is_on(alice)

    as_olga.post(f"/people/{alice.pk}/second-factor/")

    assert not second_factor.is_on(alice)
    assert not RecoveryCode.objects.exists()


def test_second_factor_is_switched_off_by_a_code_without_a_password(alice, client, factor, clock):
    _phone, codes = factor
    alice.set_unusable_password()
    alice.save()
    client.force_login(alice)

    wrong = client.post("/account/second-factor/", {"current": "", "code": "000000"}).status_code
    still = second_factor.is_on(alice)
    client.post("/account/second-factor/", {"code": codes[0]})

    assert (wrong, still) == (422, True)
    assert not second_factor.is_on(alice)


def test_c06_second_factor_of_the_first_administrator_resists_other_ones(alice, as_olga, client, factor, clock):
    """Neither by a password link nor by switching the second factor off."""
    type(alice).objects.filter(pk=alice.pk).update(first=True)

    link = as_olga.post(f"/people/{alice.pk}/password-link/")
    off = as_olga.post(f"/people/{alice.pk}/second-factor/")
    page = as_olga.get(f"/people/{alice.pk}/").content.decode()

    assert (link.status_code, off.status_code) == (403, 403)
    assert "/set-password/" not in link.content.decode()
    assert f"/people/{alice.pk}/password-link/" not in page
    assert f"/people/{alice.pk}/second-factor/" not in page
    assert second_factor.is_on(alice)
