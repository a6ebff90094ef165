"""Static files with a fingerprint in the address, so that browsers keep them for a year.

The fingerprint covers all static files and stands before their paths: `/static/<fingerprint>/base/frame.js`. What
names other files relative to itself (`import` in a script, `import.meta.url`, `url()` in a style sheet) thereby stays
within the same fingerprint; no file is rewritten, collected or built. Any changed file changes every address.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

KEPT_FOR_A_YEAR = "max-age=31536000, public, immutable"
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


@cache
def digests() -> dict[str, str]:
    """Digest of every static file by its path below `/static/`, as the files were when this process first asked."""
    digests_by_path: dict[str, str] = {}
    for finder in finders.get_finders():
        for path, storage in finder.list(None):
            prefix = getattr(storage, "prefix", None)
            name = f"{prefix}/{path}" if prefix else path
            if name not in digests_by_path:  # the first finder wins, as it does when files are served
                with storage.open(path) as file:
                    digests_by_path[name] = _digest(file.read())
    return digests_by_path


@cache
def fingerprint() -> str:
    """16 hex digits that stand for the content of all static files; equal on every machine with equal files."""
    return blake2b(repr(sorted(digests().items())).encode(), digest_size=8).hexdigest()


class FingerprintedStorage(StaticFilesStorage):
    """Addresses of static files for `{% static %}`; plain ones while DEBUG, where files change under the server."""

    def url(self, name: str | None) -> str:
        path = (name or "").lstrip("/")
        return super().url(name) if settings.DEBUG else self._address(f"{fingerprint()}/{path}")

    @lru_cache(maxsize=4096)  # noqa: B019 - one storage for the life of the process; pages name the same few files
    def _address(self, path: str) -> str:
        return super().url(path)


class StaticMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise with fingerprints, for an ASGI server: files are small, so each goes out whole and is closed at once.

    WhiteNoise's own answer is a synchronous stream, which Django's ASGI handler reads whole with a warning.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path, given = request.path_info, ""
        if path.startswith(self.static_prefix):
            first, _slash, rest = path.removeprefix(self.static_prefix).partition("/")
            if _FINGERPRINT.fullmatch(first):
                path, given = self.static_prefix + rest, first
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        if file is None:
            return self.get_response(request)
        if not given:
            return self.serve(file, request)
        head = request.method == "HEAD"
        answer = self._answer(file, "GET" if head else request.method, {})  # no conditions, no ranges: whole
        # Another version's page asks for its own files while servers are updated one by one, and files may change
        # under a running process: such an answer must not be kept under this address.
        known = digests().get(path.removeprefix(self.static_prefix)) if given == fingerprint() else None
        answer["Cache-Control"] = KEPT_FOR_A_YEAR if known == _digest(answer.content) else "no-cache"
        if head:
            answer.content = b""
        return answer

    def immutable_file_test(self, path: str, url: str) -> bool:
        """No file's own name carries a hash."""
        return False

    @classmethod
    def serve(cls, static_file: Any, request: HttpRequest) -> HttpResponse:
        return cls._answer(static_file, request.method, request.META)

    @staticmethod
    def _answer(static_file: Any, method: str | None, meta: dict[str, Any]) -> HttpResponse:
        response = static_file.get_response(method, meta)
        content = b""
        if response.file is not None:
            with response.file as file:
                content = file.read()
        answer = HttpResponse(content, status=int(response.status))
        del answer["Content-Type"]
        for name, value in response.headers:
            answer[name] = value
        if response.file is not None:
            answer["Content-Length"] = str(len(content))  # of what was read: the file may have changed since the start
        return answer
