"""Middleware of signed-in people: acting for others, origin of acts, language, time zone, first password."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit, sessions, taking_over
from aiplatform.lib import rates
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.problems import problem

MAX_MISSED = 20  # entries of one person within ten minutes
MISSED_WITHIN_S = 600

Handler = Callable[[HttpRequest], HttpResponse]


class TakeOverMiddleware:
    """Let an administrator be the user they act for in this request; runs after authentication."""

    OWN = ("/account/", "/api/v1/me/", "/api/v1/auth/")  # not available in a takeover
    SHOWN = ("/account/second-factor/", "/account/notifications/", "/api/v1/me/notifications/")

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if taking_over.KEY in request.session and request.user.is_authenticated:
            person = taking_over.acted_for(request.session, request.user)
            if person is None:
                request.session.pop(taking_over.KEY)
            else:
                request.behind = request.user  # type: ignore[attr-defined]  # travels with the request
                request.user = person
                if self._is_their_own(request):
                    return self._refused(request)
        return self.get_response(request)

    def _is_their_own(self, request: HttpRequest) -> bool:
        """Whether a path shows or changes passwords, tokens, keys and other secrets."""
        reads = request.method in ("GET", "HEAD", "OPTIONS")
        return request.path.startswith(self.SHOWN if reads else self.OWN)

    @staticmethod
    def _refused(request: HttpRequest) -> HttpResponse:
        sentence = _("You are acting for another user. Only that user can change personal account data.")
        if request.path.startswith("/api/"):
            body = problem(403, "acting_for_another", sentence, request=request)
            return JsonResponse(body, status=403, content_type="application/problem+json")
        return render(
            request, "refused.html", {"refusal": NotAllowed(sentence), "code": "acting_for_another"}, status=403
        )


class OriginMiddleware:
    """Runs after authentication: keeps where an act came from, for the audit trail."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = audit.Origin(
            address=str(request.META.get("REMOTE_ADDR") or ""),
            request_id=getattr(request, "request_id", ""),
            behind=getattr(getattr(request, "behind", None), "username", ""),
        )
        with audit.with_origin(origin):
            if request.user.is_authenticated:
                sessions.record_request(request)
            answer = self.get_response(request)
            if answer.status_code == 404:
                self._missed(request)
            return answer

    @staticmethod
    def _missed(request: HttpRequest) -> None:
        """Record requests for ids that are not theirs or do not exist; only the first of a scan."""
        match, user = request.resolver_match, request.user  # of a token's owner, too: the API has set it by now
        if match is None or not match.kwargs or not isinstance(user, User):
            return
        times = rates.count(f"missed:{user.pk}", within_s=MISSED_WITHIN_S)
        if times <= MAX_MISSED:
            more = {"others": "not written for ten minutes"} if times == MAX_MISSED else {}
            audit.record_refusal(user, "denied", request.path, method=request.method, code="not_found", **more)


class PreferencesMiddleware:
    """Runs after authentication: sets language and time zone the person chose, else the browser's."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if user.is_authenticated:
            if user.language:
                translation.activate(user.language)
                request.LANGUAGE_CODE = user.language
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
    """Redirect users whose password another person knows to the page that changes it."""

    OPEN = ("/people/give-back/", "/static/", "/jsi18n/", "/logout/", "/healthz")

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        page = reverse("accounts:password")
        if (
            not user.is_authenticated
            or not user.must_change_password
            or hasattr(request, "behind")
            or request.path == page
            or request.path.startswith(self.OPEN)
        ):
            return self.get_response(request)
        if request.path.startswith("/api/"):
            body = problem(
                403, "password_change_needed", _("Change your initial password in the browser."), request=request
            )
            return JsonResponse(body, status=403, content_type="application/problem+json")
        return redirect(page)
