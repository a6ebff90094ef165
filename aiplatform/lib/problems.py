"""The shape of refusals in the API (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def problem(status: int, code: str, detail: str, *, request: Any = None, **more: object) -> dict[str, object]:
    """Return the body of an `application/problem+json` response; `code` is stable, `detail` is for people."""
    body: dict[str, object] = {"type": "about:blank", "title": _title(status), "status": status, "code": code}
    body["detail"] = detail
    request_id = getattr(request, "request_id", None) or getattr(getattr(request, "_request", None), "request_id", None)
    if request_id:
        body["instance"] = f"urn:request:{request_id}"
    return body | more
