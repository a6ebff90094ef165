"""Error responses of the API: problem details (RFC 9457) and their OpenAPI schema."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

#: OpenAPI schema of the body of an error response.
SCHEMA = {
    "type": "object",
    "description": "Problem details (RFC 9457) of a failed request. Further members depend on the error code.",
    "properties": {
        "type": {"type": "string", "description": "Address of the page that explains the code."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable error code; match on this."},
        "detail": {"type": "string", "description": "Message for users, in their language."},
        "instance": {"type": "string", "description": "Id of the request, as in the log."},
    },
    "required": ["type", "title", "status", "code", "detail"],
    "additionalProperties": True,
}
#: Components that the OpenAPI document of the API includes.
COMPONENTS = {
    "schemas": {"Problem": SCHEMA},
    "responses": {
        "Problem": {
            "description": "The request was rejected or failed.",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    },
}


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def help_address(code: str) -> str:
    """Return the address of the page that explains an error code, relative to the platform."""
    return f"/help/reference/errors/#{code}"


def problem(status: int, code: str, detail: str, *, request: Any = None, **facts: object) -> dict[str, object]:
    """Return the body of an `application/problem+json` response.

    Args:
        code: stable error code, for scripts.
        detail: message for users.
        request: Django or DRF request; its id is added if it has one.
        facts: further members: the values of the error.
    """
    body: dict[str, object] = {"type": help_address(code), "title": _title(status), "status": status, "code": code}
    body["detail"] = detail
    request_id = getattr(request, "request_id", None) or getattr(getattr(request, "_request", None), "request_id", None)
    if request_id:
        body["instance"] = f"urn:request:{request_id}"
    return body | facts
