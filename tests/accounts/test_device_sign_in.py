"""Sign-in of a program by the browser: asked, allowed or denied once, redeemed once."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client

from accounts.models import ApiToken, AuditEntry
from accounts.services import device_sign_in

pytestmark = pytest.mark.django_db
PAGE, START, TOKEN = "/account/device/", "/api/v1/auth/device/", "/api/v1/auth/device/token/"


@pytest.fixture
def asked(client):
    response = client.post(START, {"name": "aip on laptop"}, content_type="application/json")
    assert response.status_code == 201
    return response.json()


def poll(asked):
    return Client().post(TOKEN, {"device_code": asked["device_code"]}, content_type="application/json")


def test_program_gets_a_token_of_the_user_who_allows_it(asked, as_alice, alice):
    assert poll(asked).json()["code"] == "authorization_pending"
    page = as_alice.get(asked["verification_uri_complete"]).content.decode()
    assert "aip on laptop" in page
    assert asked["user_code"] in page

    as_alice.post(PAGE, {"code": asked["user_code"], "answer": "allow"})
    response = poll(asked)

    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    secret = response.json()["token"]
    me = Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"})
    assert me.json()["username"] == alice.username
    assert [token.name for token in ApiToken.objects.filter(user=alice)] == ["aip on laptop"]
    assert poll(asked).json()["code"] == "expired_token"


def test_program_that_is_denied_gets_no_token(asked, as_alice, alice):
    as_alice.post(PAGE, {"code": asked["user_code"].lower().replace("-", ""), "answer": "deny"})

    assert poll(asked).json()["code"] == "access_denied"
    assert not ApiToken.objects.exists()
    assert AuditEntry.objects.filter(verb="device_denied").exists()


def test_code_is_used_once(asked, as_alice, as_bob):
    as_alice.post(PAGE, {"code": asked["user_code"], "answer": "deny"})

    response = as_bob.post(PAGE, {"code": asked["user_code"], "answer": "allow"})

    assert response.status_code == 422
    assert "No program waits with this code" in response.content.decode()
    assert poll(asked).json()["code"] == "access_denied"


def test_page_asks_for_the_code_and_for_a_sign_in(client, as_alice):
    assert client.get(PAGE).status_code == 302
    assert 'name="code"' in as_alice.get(PAGE).content.decode()
    assert as_alice.get(f"{PAGE}?code=BCDF-GHJK").status_code == 422


def test_get_allows_nothing(asked, as_alice):
    as_alice.get(f"{PAGE}?code={asked['user_code']}&answer=allow")

    assert poll(asked).json()["code"] == "authorization_pending"


def test_codes_cannot_be_guessed(as_alice, alice):
    cache.clear()
    for _attempt in range(device_sign_in.MAX_CODES):
        as_alice.get(f"{PAGE}?code=BCDF-GHJK")

    assert "Too many requests" in as_alice.get(f"{PAGE}?code=BCDF-GHJK").content.decode()


def test_user_who_was_deactivated_meanwhile_gets_no_token(asked, as_alice, alice):
    as_alice.post(PAGE, {"code": asked["user_code"], "answer": "allow"})
    alice.is_active = False
    alice.save()

    assert poll(asked).json()["code"] == "access_denied"
    assert not ApiToken.objects.exists()


def test_stored_request_holds_no_secret(asked):
    stored = cache.get(device_sign_in._key(asked["device_code"]))

    assert asked["device_code"] not in str(stored)


def test_of_two_answers_at_once_the_first_counts(asked, alice, bob):
    sign_in = device_sign_in.find(asked["user_code"], user=alice)
    device_sign_in.answer(sign_in, user=alice, allows=False)

    with pytest.raises(device_sign_in.CodeExpired):
        device_sign_in.answer(sign_in, user=bob, allows=True)
    assert poll(asked).json()["code"] == "access_denied"
