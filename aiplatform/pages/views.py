"""Pages of the frame itself."""

from __future__ import annotations

import platform
import sys
from urllib.parse import quote

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.template import loader
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_GET, require_POST
from django.views.i18n import JavaScriptCatalog

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform import __version__
from aiplatform.frame import palette
from aiplatform.lib import disk
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.pages import needs
from aiplatform.lib.problems import problem
from aiplatform.pages import handbook
from aiplatform.pages.styleguide import sample
from workers.core.models import VirtualCluster
from workers.resources.clusters import members

RETRY_AFTER_S = 5
ERROR_PAGES = {400: "400.html", 403: "403.html", 404: "404.html"}

texts = login_not_required(cache_control(private=True, max_age=300)(JavaScriptCatalog.as_view()))


@needs(Action.OVERVIEW_VIEW)
def search(request: SignedInRequest) -> JsonResponse:
    """Pages, commands and objects that match `?q=`, of those the reader may open."""
    return JsonResponse({"results": palette.results(request.user, request.GET.get("q", ""))})


@require_POST
@needs(Action.SELF_MANAGE)
def switch_cluster(request: SignedInRequest) -> HttpResponse:
    """Make another of the reader's clusters the current one and go back to the page they were on."""
    chosen = request.POST.get("cluster", "")
    mine = VirtualCluster.objects.open().filter(memberships__user=request.user)
    cluster = get_object_or_404(mine, pk=int(chosen) if chosen.isdecimal() and len(chosen) < 19 else 0)
    members.switch(request.user, cluster)
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(back if safe else "/")


@needs(Action.OVERVIEW_VIEW)
def styleguide(request: SignedInRequest) -> HttpResponse:
    """Every component on one page, for those who build and translate pages."""
    return render(request, "styleguide.html", sample())


@require_GET
@needs(Action.OVERVIEW_VIEW)
def about(request: SignedInRequest) -> HttpResponse:
    """Which version this is, under which licence, and what it needs of a browser."""
    return render(request, "about.html", {"browsers": handbook.BROWSERS, "python": platform.python_version()})


@login_not_required
def admin_login(request: HttpRequest) -> HttpResponse:
    """Replace the admin site's own sign-in page: strangers sign in as everywhere, others are refused."""
    if request.user.is_authenticated:
        raise NotAllowed(_("The admin site is for administrators."))
    return redirect_to_login(request.GET.get("next", "/admin/"))


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """Whether this web process can reach its database: by a query, since an open connection may have lost its end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok", "version": __version__})


def _error(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    """An error page; for the API a problem."""
    if request.path.startswith("/api/"):
        body = problem(status, code, detail, request=request)
        return JsonResponse(body, status=status, content_type="application/problem+json")
    return render(request, ERROR_PAGES[status], {"code": code}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 400, "bad_request", _("Bad request."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 403, "permission_denied", _("Access denied."))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _error(request, 403, "csrf_failed", _("The form has expired. Reload the page and send it again."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, 404, "not_found", _("Not found."))


def _away(request: HttpRequest) -> HttpResponse:
    sentence = _("The database does not respond at the moment. Saved data is safe; try again in a moment.")
    if request.path.startswith("/api/"):
        body = problem(503, "unavailable", sentence, request=request)
        answer: HttpResponse = JsonResponse(body, status=503, content_type="application/problem+json")
    else:
        page = loader.get_template("away.html").render(
            {"code": "unavailable", "request_id": getattr(request, "request_id", "")}
        )
        answer = HttpResponse(page, status=503)
    answer["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def _full(request: HttpRequest) -> HttpResponse:
    """What every write answers while the disk has no room. It reads nothing and writes nothing."""
    sentence = disk.sentence()
    if request.path.startswith("/api/"):
        body = problem(507, disk.DiskFull.code, sentence, request=request)
        return JsonResponse(body, status=507, content_type="application/problem+json")
    facts = {"code": disk.DiskFull.code, "request_id": getattr(request, "request_id", ""), "sentence": sentence}
    answer = HttpResponse(loader.get_template("full.html").render(facts), status=507)
    answer["X-Refusal"] = quote(sentence)
    return answer


def server_error(request: HttpRequest) -> HttpResponse:
    """The page of error 500. Needs neither database nor person, which may be what is broken.

    A database that is away, or has no connection left, is no bug of ours: it says to come back. Nor is a full disk.
    """
    if disk.is_full(sys.exc_info()[1]):
        return _full(request)
    if isinstance(sys.exc_info()[1], (OperationalError, InterfaceError)):
        return _away(request)
    request_id = getattr(request, "request_id", "")
    if request.path.startswith("/api/"):
        body = problem(500, "server_error", _("Internal error."), request=request)
        return JsonResponse(body, status=500, content_type="application/problem+json")
    return HttpResponse(
        loader.get_template("500.html").render({"code": "server_error", "request_id": request_id}), status=500
    )
