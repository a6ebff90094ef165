"""Sign-in of a program by the browser: OAuth 2.0 Device Authorization Grant (RFC 8628).

The program shows an address with a short code and polls with a secret of its own; a signed-in user allows or denies the
code. Requests are kept in the cache for ten minutes. The API token is issued with the poll that follows the answer, so
that its secret is never stored.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.utils.translation import gettext as _

from accounts.models import ApiToken, User
from accounts.services import audit, tokens
from aiplatform.lib import rates
from aiplatform.lib.errors import DomainError

LIFETIME_S = 600
INTERVAL_S = 3  # between two polls of a program
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that no code is a word (RFC 8628, section 6.1)
CODE_LENGTH = 8
TOKEN_DAYS = 90
MAX_STARTS, MAX_CODES = 30, 20  # per address and per user, in ten minutes


class AuthorizationPending(DomainError, code="authorization_pending", status=400): ...


class AccessDenied(DomainError, code="access_denied", status=400): ...


class CodeExpired(DomainError, code="expired_token", status=400): ...


@dataclass(frozen=True)
class SignIn:
    """A program that waits for an answer: its codes, its name and the address that it called from."""

    device_code: str
    user_code: str
    name: str
    address: str


def start(*, name: str, address: str) -> SignIn:
    """Begin the sign-in of a program.

    Args:
        name: names the program and the token, as in "aip on laptop".
        address: the program's IP address, shown to the user.

    Raises:
        TooOften: the address started too many.
    """
    rates.limit(f"device-start:{address}", max_count=MAX_STARTS, within_s=LIFETIME_S)
    signs = "".join(secrets.choice(ALPHABET) for _sign in range(CODE_LENGTH))
    sign_in = SignIn(secrets.token_urlsafe(32), f"{signs[:4]}-{signs[4:]}", name, address)
    _write(sign_in.device_code, {"user_code": sign_in.user_code, "name": name, "address": address})
    cache.set(_user_key(sign_in.user_code), sign_in.device_code, LIFETIME_S)
    return sign_in


def find(user_code: str, *, user: User) -> SignIn | None:
    """Return the sign-in with this code, if it is unanswered; lower case and missing dashes are accepted.

    Raises:
        TooOften: the user entered too many codes.
    """
    rates.limit(f"device-code:{user.pk}", max_count=MAX_CODES, within_s=LIFETIME_S)
    device_code = cache.get(_user_key(user_code))
    stored = cache.get(_key(device_code)) if device_code else None
    if not stored or "user" in stored:
        return None
    return SignIn(device_code, stored["user_code"], stored["name"], stored["address"])


def answer(sign_in: SignIn, *, user: User, allows: bool) -> None:
    """Allow or deny a sign-in as `user`; its code cannot be used again.

    Raises:
        CodeExpired: another request answered it meanwhile.
    """
    if not cache.delete(_user_key(sign_in.user_code)):
        raise CodeExpired(_("The code has expired. Start the sign-in again."))
    stored = {"user_code": sign_in.user_code, "name": sign_in.name, "address": sign_in.address, "user": user.pk}
    _write(sign_in.device_code, stored | {"allowed": allows})
    if not allows:
        audit.record(user, "device_denied", user, name=sign_in.name, address=sign_in.address)


def redeem(device_code: str) -> tuple[ApiToken, str]:
    """Return the token of an allowed sign-in and its secret, once.

    Raises:
        AuthorizationPending: nobody has answered yet.
        AccessDenied: the user denied it.
        CodeExpired: the code is unknown, was redeemed or is older than ten minutes.
    """
    stored = cache.get(_key(device_code))
    if stored is None:
        raise CodeExpired(_("The code has expired. Start the sign-in again."))
    if "user" not in stored:
        raise AuthorizationPending(_("The sign-in is not confirmed yet."))
    if not cache.delete(_key(device_code)):  # another request redeemed it
        raise CodeExpired(_("The code has expired. Start the sign-in again."))
    user = User.objects.filter(pk=stored["user"], is_active=True).first()
    if not stored["allowed"] or user is None:
        raise AccessDenied(_("The sign-in was denied in the browser."))
    return tokens.issue(user=user, name=stored["name"], expires_in=timedelta(days=TOKEN_DAYS))


def _write(device_code: str, stored: dict[str, Any]) -> None:
    cache.set(_key(device_code), stored, LIFETIME_S)


def _key(device_code: str) -> str:
    return f"device:{tokens.digest(device_code)}"


def _user_key(user_code: str) -> str:
    return f"device-code:{user_code.upper().replace('-', '').replace(' ', '')[:CODE_LENGTH]}"
