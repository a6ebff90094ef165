"""`/client/`: the client `aip` of this platform as wheel, single file and source package, for computers without it.

The files are public: they are needed before anybody can sign in, and hold nothing of the installation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from aiplatform import __version__
from aiplatform.cli import client_files


@cache
def _files() -> dict[str, tuple[str, Callable[[], bytes]]]:
    """Return media type and content of each file by its name."""
    wheel_name = client_files.wheel_name()
    return {
        client_files.PYZ: ("application/zip", cache(client_files.pyz)),
        wheel_name: ("application/zip", cache(lambda: client_files.wheel()[1])),
        client_files.sdist_name(): ("application/zip", cache(client_files.sdist)),
    }


@login_not_required
@require_safe
@cache_control(private=True, max_age=0)
@vary_on_headers("Accept", "Cookie")
def client_page(request: HttpRequest) -> HttpResponse:
    """Show how to install the client; programs such as `pip install` get the source package at the same address."""
    if "text/html" not in request.headers.get("Accept", ""):
        return client_file(request, client_files.sdist_name())
    base = request.build_absolute_uri(request.path)
    context = {
        "address": base,
        "server": request.build_absolute_uri("/").rstrip("/"),
        "pyz": client_files.PYZ,
        "wheel": client_files.wheel_name(),
        "version": __version__,
    }
    return render(request, "client.html", context)


@login_not_required
@require_safe
@cache_control(max_age=300)
def client_file(request: HttpRequest, name: str) -> HttpResponse:
    """Send one of the files."""
    if name not in _files():
        raise Http404
    media_type, content = _files()[name]
    return HttpResponse(
        content(), content_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
