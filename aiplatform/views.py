"""Pages of the frame itself."""

from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from accounts.permissions import Action
from aiplatform import __version__
from aiplatform.lib.pages import needs


@needs(Action.OVERVIEW_VIEW)
def overview(request: HttpRequest) -> HttpResponse:
    """The start page."""
    return render(request, "overview.html")


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """Whether this web process can reach its database."""
    connection.ensure_connection()
    return JsonResponse({"status": "ok", "version": __version__})


def _error(request: HttpRequest, status: int) -> HttpResponse:
    return render(request, f"{status}.html", {"request_id": getattr(request, "request_id", "")}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return _error(request, 500)
