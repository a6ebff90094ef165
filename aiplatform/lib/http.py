"""Middleware of every request: its id, private caching, and text that a database can hold."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from aiplatform import __version__

_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}\Z")


class RequestIdMiddleware:
    """Give each request an id, which appears in logs, in error pages and in `X-Request-Id`; name the version."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        header = request.headers.get("X-Request-Id", "")
        request.request_id = header if _GIVEN.match(header) else uuid.uuid4().hex[:16]  # type: ignore[attr-defined]  # travels with the request
        response = self.get_response(request)
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]  # travels with the request
        if _of_api(request):
            response["X-Aip-Version"] = __version__  # clients of another version say so
        return response


class PrivateMiddleware:
    """Forbid caches to store responses, unless a response says otherwise."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "private, no-store"
        patch_vary_headers(response, ["Cookie", "Authorization"])
        return response


class StorableTextMiddleware:
    """Refuse NUL in addresses and forms of pages, which no database holds; the API says so by its own fields."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\x00" in request.path or ("%00" in request.META["QUERY_STRING"] and not _of_api(request)):
            raise BadRequest("NUL in the address")
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> None:
        """Look through the form, which the guard of forms has read by now."""
        if request.method == "POST" and not _of_api(request):
            for name, values in request.POST.lists():
                if any("\x00" in text for text in (name, *values)):
                    raise BadRequest("NUL in a form")


def _of_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")
