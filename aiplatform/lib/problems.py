"""The shape of refusals in the API (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

#: What OpenAPI says of these responses.
SCHEMA = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457). Further members are facts, by error code.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable; match on this."},
        "detail": {"type": "string", "description": "For people, in their language."},
        "instance": {"type": "string", "description": "Of this request, as in the log."},
    },
    "required": ["type", "title", "status", "code", "detail"],
    "additionalProperties": True,
}
COMPONENTS = {
    "schemas": {"Problem": SCHEMA},
    "responses": {
        "Problem": {
            "description": "The request was refused, or could not be answered.",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    },
}


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
