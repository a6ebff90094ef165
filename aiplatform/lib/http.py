"""Small things every request needs."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}\Z")


class RequestIdMiddleware:
    """Give each request an id; it stands in logs, in error pages and in `X-Request-Id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request.request_id = given if _GIVEN.match(given) else uuid.uuid4().hex[:16]  # type: ignore[attr-defined]
        response = self.get_response(request)
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        return response


class PrivateMiddleware:
    """What one person sees is nobody else's: answers that do not say otherwise are kept by no cache."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "private, no-store"
        patch_vary_headers(response, ["Cookie", "Authorization"])
        return response


class StaticMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise for an ASGI server: our files are small, so each goes out in one piece and is closed at once.

    Its own answer is a synchronous stream, which Django's ASGI handler reads whole with a warning.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        answer = HttpResponse(content, status=int(found.status))
        del answer["Content-Type"]
        for name, value in found.headers:
            answer[name] = value
        return answer
