"""Middleware that compresses dynamic responses: pages, API, CSV, text.

What is compressed, what is not, and how that answers BREACH: aiplatform/docs/decisions/0029-compressed-responses.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

from aiplatform.lib.encodings import MIN_BYTES, choose, compress_response, is_compressible

DEFAULT_CACHE_CONTROL = "private, no-store"
"""What responses get whose view does not set `Cache-Control`, see PrivateMiddleware."""

SAFE_METHODS = frozenset({"GET", "HEAD"})
FOREIGN_SITES = frozenset({"cross-site", "same-site"})


class CompressionMiddleware:
    """Compress whole responses to GET and HEAD; streams, ranges and responses with secrets stay as they are."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not may_compress(response, request):
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        encoding = choose(request.headers.get("Accept-Encoding", ""))
        # Another site, or a port of a job on this host, made the browser send this request: its author could guess
        # secrets of the response by its length. Browsers set this header; scripts cannot.
        if encoding and request.headers.get("Sec-Fetch-Site") not in FOREIGN_SITES:
            response.content = compress_response(response.content, encoding)
            response["Content-Encoding"] = encoding
            response["Content-Length"] = str(len(response.content))
        return response


def may_compress(response: HttpResponseBase, request: HttpRequest) -> TypeGuard[HttpResponse]:
    """Whether some client may get this response compressed.

    A response with `ETag` promises its bytes, which `If-Match` and `If-Range` rely on. A view that sets `no-store`
    itself (`never_cache`) shows a secret.
    """
    if not isinstance(response, HttpResponse) or request.method not in SAFE_METHODS:
        return False
    headers = response.headers
    cache_control = headers.get("Cache-Control", "")
    return (
        response.status_code not in {204, 206, 304}
        and len(response.content) >= MIN_BYTES
        and is_compressible(headers.get("Content-Type", ""))
        and not any(name in headers for name in ("Content-Encoding", "Content-Range", "ETag"))
        and ("no-store" not in cache_control or cache_control == DEFAULT_CACHE_CONTROL)
    )
