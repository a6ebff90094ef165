"""Authentication for raw ASGI applications, which Django's middleware does not reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import CookieError, SimpleCookie
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.http.cookie import parse_cookie
from django.utils import translation
from django.utils.crypto import constant_time_compare

from accounts.models import ApiToken, User
from accounts.services import taking_over, tokens
from accounts.sign_in import lockout

SAFE = {"GET", "HEAD", "OPTIONS"}


def _header(scope: dict[str, Any], name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return ""


def same_origin(scope: dict[str, Any]) -> bool:
    """Whether the browser reports a request from our own pages, or reports no origin at all."""
    origin = _header(scope, b"origin")
    return not origin or urlsplit(origin).netloc == _header(scope, b"host")


@contextmanager
def in_callers_language(scope: dict[str, Any]) -> Iterator[None]:
    """Use the language of the caller's browser, as pages do for users without a choice; see `speak_to`."""
    request: Any = SimpleNamespace(
        COOKIES=parse_cookie(_header(scope, b"cookie")),
        META={"HTTP_ACCEPT_LANGUAGE": _header(scope, b"accept-language")},
    )
    with translation.override(translation.get_language_from_request(request)):
        yield


def speak_to(user: User) -> None:
    """Within `in_callers_language`, go over to the language that this person chose, if they chose one."""
    if user.language:
        translation.activate(user.language)


def _from_session(cookie: str) -> User | None:
    try:
        jar = SimpleCookie(cookie)
    except CookieError:
        return None
    morsel = jar.get(settings.SESSION_COOKIE_NAME)
    return None if morsel is None else person_of_session(morsel.value)


def person_of_session(key: str) -> User | None:
    """Return whom a session of the platform acts as; None where it is over, or its person may not sign in."""
    session = SessionStore(session_key=key)
    user = User.objects.filter(pk=session.get(SESSION_KEY) or 0, is_active=True).first()
    if user and constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return taking_over.acted_for(session, user) or user
    return None


def _ready(user: User | None) -> User | None:
    """Return the person unless their first password is still to be changed."""
    return None if user is None or user.must_change_password else user


def bearer(scope: dict[str, Any]) -> str:
    """The secret that an ASGI scope was sent with as a bearer token; "" without one."""
    scheme, _space, value = _header(scope, b"authorization").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def find_user(scope: dict[str, Any]) -> User | None:
    """Return the user of an ASGI scope, by bearer token or session cookie; None without one.

    A cookie does not count for a request that changes something and comes from a foreign page.
    """
    scheme, _space, value = _header(scope, b"authorization").partition(" ")
    safe = scope.get("method", "GET") in SAFE
    if scheme.lower() == "bearer":
        token = tokens.find(value.strip())
        if token is None:
            lockout.count_token_guess_at(scope)
        if token is None or (token.scope == ApiToken.Scope.READ and not safe):
            return None
        return _ready(token.user)
    if not safe and not same_origin(scope):
        return None
    return _ready(_from_session(_header(scope, b"cookie")))


async def user_from_scope(scope: dict[str, Any]) -> User | None:
    """`find_user` for asynchronous callers."""
    return await sync_to_async(find_user)(scope)
