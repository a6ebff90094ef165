"""`/metrics`: the platform's figures for Prometheus, behind a token."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts.access.permissions import Action
from accounts.sign_in.authentication import TokenAuthentication
from workers.resources.monitoring import prometheus


@require_GET
@never_cache
@login_not_required
def show(request: HttpRequest) -> HttpResponse:
    """All metrics, for bearers of `AIP_METRICS_TOKEN` or of an API token of a user who manages the nodes."""
    refusal = _refusal(request)
    if refusal:
        headers = {"WWW-Authenticate": "Bearer"} if refusal == 401 else {}
        return HttpResponse("A token is needed.\n", status=refusal, content_type="text/plain", headers=headers)
    return HttpResponse(prometheus.text(), content_type=CONTENT_TYPE_LATEST)


def _refusal(request: HttpRequest) -> int:
    """0, or the status to answer."""
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return 401
    wanted = settings.METRICS_TOKEN
    if wanted and secrets.compare_digest(token.strip().encode(), wanted.encode()):
        return 0
    try:
        credentials = TokenAuthentication().authenticate(Request(request))
    except AuthenticationFailed:
        return 401
    except PermissionDenied:
        return 403
    return 0 if credentials and credentials[0].can(Action.CLUSTER_MANAGE) else 403
