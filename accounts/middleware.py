"""What follows from who is signed in: language and time zone, and a first password that must be changed."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.services import audit
from aiplatform.lib.problems import problem

Handler = Callable[[HttpRequest], HttpResponse]


class OriginMiddleware:
    """After authentication: what the audit trail says about where an act came from."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = audit.Origin(
            address=str(request.META.get("REMOTE_ADDR") or ""), request_id=getattr(request, "request_id", "")
        )
        with audit.coming_from(origin):
            return self.get_response(request)


class PreferencesMiddleware:
    """After authentication: language and time zone the person chose; else what the browser asked for."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if user.is_authenticated:
            if user.language:
                translation.activate(user.language)
                request.LANGUAGE_CODE = user.language  # type: ignore[attr-defined]
            if user.time_zone:
                try:
                    timezone.activate(ZoneInfo(user.time_zone))
                except (ZoneInfoNotFoundError, ValueError):
                    timezone.deactivate()
        try:
            return self.get_response(request)
        finally:
            timezone.deactivate()


class FirstPasswordMiddleware:
    """Whoever signs in with a password that somebody else knows changes it before anything else."""

    OPEN = ("/static/", "/jsi18n/", "/logout/", "/healthz")

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        page = reverse("accounts:password")
        if (
            not user.is_authenticated
            or not user.must_change_password
            or request.path == page
            or request.path.startswith(self.OPEN)
        ):
            return self.get_response(request)
        if request.path.startswith("/api/"):
            body = problem(
                403, "password_change_needed", _("Change your first password in the browser."), request=request
            )
            return JsonResponse(body, status=403, content_type="application/problem+json")
        return redirect(page)
