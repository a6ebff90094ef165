"""Apply a person's own language and time zone to each request."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation


class PreferencesMiddleware:
    """After authentication: language and time zone the person chose; else what the browser asked for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
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
