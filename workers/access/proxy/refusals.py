"""Refusals of the ports' origin: why a browser or a script does not get through, in its language."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from aiohttp import web
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from accounts.sign_in.asgi import in_callers_language

_NO_PORT = _("This job has no such port. It may have been unpublished.")
#: code → status and sentence.
REFUSALS: dict[str, tuple[int, Any]] = {
    "not_found": (404, _NO_PORT),
    "not_admitted": (403, _("Open this from the job page.")),
    "ticket_used": (403, _("This link was already used or has expired. Open the port again from the job page.")),
    "not_this_browser": (
        403,
        _("Sign in to the platform in this browser, then open the port from the job page."),
    ),
    "not_shared": (403, _("You can no longer access this port.")),
    "foreign_page": (403, _("Requests from pages of other sites are rejected.")),
    "not_signed_in": (401, _("This token is unknown, expired or revoked. Create a new one in Settings.")),
    "read_only": (403, _("This token is read-only.")),
    "method_not_allowed": (405, _("This type of request is not forwarded.")),
    "job_not_running": (410, _("The job is not running. Its ports are available while it runs.")),
    "job_paused": (503, _("The job is paused. Continue it to use its ports.")),
    "no_exec_server": (501, _("Ports are not available for this kind of job.")),
    "unreachable": (504, _("The job does not respond. It may be paused, or its node unreachable.")),
    "not_listening": (502, _("No program listens on this port of the job yet. See its log.")),
    "too_busy": (503, _("Too many connections to this port are open. Close some and try again.")),
    "broken_off": (502, _("The server in the job closed the connection. See the log of the job.")),
    "points_inside": (502, _("This redirects to an internal address, which is not forwarded.")),
    "no_socket": (502, _("The server in the job did not accept this WebSocket.")),
}
#: What the way into a job refuses, by its code.
CHANNELS = {
    "not_running": "job_not_running",
    "paused": "job_paused",
    "no_exec_server": "no_exec_server",
    "unreachable": "unreachable",
    "refused": "not_listening",
}


class Refused(Exception):
    """The request ends here; `code` is one of `REFUSALS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
        self.status, self.sentence = REFUSALS[code]


def answer(request: web.Request, refused: Refused, job: int | None) -> web.Response:
    """The response for the caller: a page for browsers, otherwise a problem in JSON."""
    raw_headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    response_headers = {
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    if refused.status == 401:
        response_headers["WWW-Authenticate"] = "Bearer"
    with in_callers_language({"headers": raw_headers}):
        sentence = str(refused.sentence)
        if request.headers.get("Sec-Fetch-Mode") == "navigate":
            back = f"{settings.SITE_URL}/jobs/{job}/" if job else settings.SITE_URL
            page = render_to_string("ports/refused.html", {"sentence": sentence, "back": back})
            response_headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"
            return web.Response(text=page, status=refused.status, content_type="text/html", headers=response_headers)
    body = {
        "type": "about:blank",
        "title": HTTPStatus(refused.status).phrase,
        "status": refused.status,
        "code": refused.code,
        "detail": sentence,
    }
    return web.Response(
        text=json.dumps(body), status=refused.status, content_type="application/problem+json", headers=response_headers
    )
