"""Limits of failed sign-ins: per name and address, and per address over all names.

Failures are rows (django-axes), so the count holds over all web processes and restarts.
"""

from __future__ import annotations

from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import ngettext

from accounts.services import audit
from aiplatform.lib.problems import problem

TOKEN_GUESS = "(api token)"  # noqa: S105 - the name under which unknown tokens are counted


class Handler(AxesDatabaseHandler):
    """Axes' own counting, and a limit for an address that tries many names."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        if super().is_locked(request, credentials):
            return True
        address = getattr(request, "axes_ip_address", None)
        if address is None:
            return False
        recent = AccessAttempt.objects.filter(ip_address=address, attempt_time__gte=get_cool_off_threshold(request))
        return (recent.aggregate(all=Sum("failures_since_start"))["all"] or 0) >= settings.FAILURES_PER_ADDRESS


def pause_s() -> int:
    """How long a locked-out caller waits, in seconds."""
    pause = get_cool_off()
    return int(pause.total_seconds()) if pause else 0


def sentence() -> str:
    minutes = max(1, round(pause_s() / 60))
    text = ngettext(
        "Too many failed attempts. Try again in %(minutes)s minute.",
        "Too many failed attempts. Try again in %(minutes)s minutes.",
        minutes,
    )
    return text % {"minutes": minutes}


def answer(request: HttpRequest, response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """Answer a locked-out caller, also with the right password: 429 and when to come back."""
    if request.path.startswith("/api/"):
        body = problem(429, "too_many_attempts", sentence(), request=request)
        refusal: HttpResponse = JsonResponse(body, status=429, content_type="application/problem+json")
    else:
        refusal = render(request, "accounts/locked_out.html", {"sentence": sentence()}, status=429)
    refusal["Retry-After"] = str(pause_s())
    return refusal


def is_paused(request: HttpRequest, username: str) -> bool:
    """Whether this name from this address has to wait."""
    locked = not AxesProxyHandler.is_allowed(request, {"username": username})
    request.axes_locked_out = locked  # type: ignore[attr-defined]  # travels with the request
    return locked


def count_failure(request: HttpRequest, username: str) -> None:
    """Count a wrong second factor like a wrong password."""
    user_login_failed.send(sender=__name__, credentials={"username": username}, request=request)
    is_paused(request, username)


def count_token_guess_at(scope: dict[str, Any]) -> bool:
    """`count_token_guess` for a raw ASGI application: the same counter, without a request of Django's."""
    return count_token_guess(
        _request_from((scope.get("client") or ("",))[0], scope.get("path", "/"), scope.get("method", "GET"))
    )


def is_paused_at(address: str, name: str) -> bool:
    """`is_paused` for who comes by another door than HTTP, such as SSH."""
    return is_paused(_request_from(address), name)


def count_failure_at(address: str, name: str) -> None:
    """`count_failure` for who comes by another door than HTTP: the same counter guards all of them."""
    count_failure(_request_from(address), name)


def _request_from(address: str, path: str = "/", method: str = "GET") -> HttpRequest:
    request = HttpRequest()
    request.method, request.path = method, path
    request.META["REMOTE_ADDR"] = address
    request.META["SERVER_NAME"] = request.META["SERVER_PORT"] = ""
    return request


def count_token_guess(request: HttpRequest) -> bool:
    """Count an unknown API token from this address; True when the address has guessed too often.

    Only wrong tokens are refused: a secret of 256 bits is not found by trying, and a colleague behind the
    same address must not suffer.
    """
    credentials = {"username": TOKEN_GUESS}
    if AxesProxyHandler.is_allowed(request, credentials):
        AxesProxyHandler.user_login_failed(sender=__name__, credentials=credentials, request=request)
        audit.record_refusal(None, "token_unknown", request.path)
    locked = not AxesProxyHandler.is_allowed(request, credentials)
    request.axes_locked_out = locked  # type: ignore[attr-defined]  # travels with the request
    return locked
