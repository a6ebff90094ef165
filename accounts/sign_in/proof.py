"""Proof that this session has just signed in with a temporary password.

The page that replaces the password then does not ask for it again. A later session does, and so does this one after
`VALID_S` seconds, because somebody else may sit at the open browser by then.
"""

from __future__ import annotations

from time import time

from django.http import HttpRequest

from accounts.models import User

KEY = "temporary_password"  # in the session: whose password was entered, and when
VALID_S = 15 * 60.0


def record(request: HttpRequest, user: User, *, at: float | None = None) -> None:
    """Record that `user` entered a temporary password; call it after the sign-in, which renews the session.

    Args:
        at: when it was entered, in seconds since the epoch; None is now.
    """
    if user.must_change_password:
        request.session[KEY] = {"user": user.pk, "at": time() if at is None else at}


def is_recent(request: HttpRequest, user: User) -> bool:
    """Whether the temporary password of `user` was entered in this session within `VALID_S`."""
    entered = request.session.get(KEY) or {}
    return entered.get("user") == user.pk and 0 <= time() - entered.get("at", 0.0) < VALID_S


def clear(request: HttpRequest) -> None:
    """Forget the proof, once the password is the user's own."""
    request.session.pop(KEY, None)
