"""Who asks a raw ASGI application: by cookie from our own pages, or by token."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from accounts.models import ApiToken, User
from accounts.services import passwords, tokens
from accounts.sign_in.asgi import find_user


def scope(method="GET", **headers):
    given = {"host": "ai.example.org", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {"type": "http", "method": method, "headers": [(k.encode(), v.encode()) for k, v in given.items()]}


@pytest.fixture
def cookie(alice):
    client = Client()
    client.force_login(alice)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def test_asgi_find_user_names_the_person_of_a_session_cookie(alice, cookie):
    assert find_user(scope(cookie=cookie)) == alice
    assert find_user(scope("PATCH", cookie=cookie, origin="https://ai.example.org")) == alice


@pytest.mark.parametrize("origin", ["https://e.vil", "null", "https://ai.example.org.e.vil"])
def test_j01_asgi_find_user_changes_nothing_by_cookie_of_a_foreign_page(cookie, origin):
    assert find_user(scope("POST", cookie=cookie, origin=origin)) is None


def test_asgi_find_user_finds_nobody_for_a_stranger(db):
    for headers in (
        {},
        {"cookie": f"{settings.SESSION_COOKIE_NAME}=x"},
        {"cookie": "=;\x01"},
        {"authorization": "Bearer x"},
    ):
        assert find_user(scope(**headers)) is None


def test_asgi_find_user_lets_a_read_token_only_read(alice):
    _token, write = tokens.issue(user=alice, name="w")
    _token, read = tokens.issue(user=alice, name="r", scope=ApiToken.Scope.READ)

    assert find_user(scope("POST", authorization=f"Bearer {write}")) == alice
    assert find_user(scope("GET", authorization=f"Bearer {read}")) == alice
    assert find_user(scope("POST", authorization=f"Bearer {read}")) is None


def test_a06_asgi_find_user_drops_disabled_and_changed_people_at_once(alice, cookie):
    passwords.change(user=alice, password="another long phrase")
    assert find_user(scope(cookie=cookie)) is None

    _token, secret = tokens.issue(user=alice, name="w")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert find_user(scope(authorization=f"Bearer {secret}")) is None


def test_asgi_find_user_accepts_no_first_password(alice):
    _token, secret = tokens.issue(user=alice, name="w")
    User.objects.filter(pk=alice.pk).update(must_change_password=True)

    assert find_user(scope(authorization=f"Bearer {secret}")) is None
