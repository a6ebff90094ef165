"""Serves the built help site at `/help/`."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from aiplatform.lib.encodings import choose
from aiplatform.lib.static_files import KEPT_FOR_A_YEAR
from aiplatform.pages.help import site

RETRY_AFTER_S = 10
INDEX = "index.html"  # the file of a folder


@require_safe
@login_not_required
def help_file(request: HttpRequest, path: str = "") -> HttpResponse:
    """Return a file of the help site; it is the same for all users, and readable before sign-in."""
    if not site.current_version(site.root()):
        page = render(request, "help.html")
        page["Retry-After"] = str(RETRY_AFTER_S)
        return page
    name = path + INDEX if path == "" or path.endswith("/") else path
    file = site.find_file(name)
    if file is None:
        if site.find_file(f"{name}/{INDEX}"):
            return HttpResponseRedirect(f"/help/{name}/")
        raise Http404(name)
    encoding = choose(request.headers.get("Accept-Encoding", "")) if file.encodings else None
    etag = f'"{file.digest}{f"-{encoding}" if encoding else ""}"'
    if etag in request.headers.get("If-None-Match", ""):
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = HttpResponse(file.stored(encoding).read_bytes(), content_type=file.content_type)
        if encoding:
            response["Content-Encoding"] = encoding
    response["ETag"] = etag
    response["Cache-Control"] = KEPT_FOR_A_YEAR if file.is_immutable else "no-cache"
    patch_vary_headers(response, ["Accept-Encoding"])
    return response
