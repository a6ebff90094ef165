"""Middleware of every request: its id, and private caching."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}\Z")


class RequestIdMiddleware:
    """Give each request an id; it stands in logs, in error pages and in `X-Request-Id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request.request_id = given if _GIVEN.match(given) else uuid.uuid4().hex[:16]  # type: ignore[attr-defined]  # travels with the request
        response = self.get_response(request)
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]  # travels with the request
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
