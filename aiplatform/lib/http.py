"""Small things every request needs."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

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
