"""Static files with a fingerprint in the address, so that browsers keep them for a year.

The fingerprint covers all static files and precedes their paths: `/static/<fingerprint>/base/frame.js`. What
names other files relative to itself (`import` in a script, `import.meta.url`, `url()` in a style sheet) thereby stays
within the same fingerprint. Any changed file changes every address.

Below the fingerprint there are also bundles (aiplatform/lib/bundles.py), made from the files on first request.
Everything that is text is sent in Brotli or gzip, with or without a fingerprint. Compressed forms are stored in
`AIP_RUN_DIR/static`, named by the digest of the content: each machine compresses each content once, whichever process
needs it first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

from aiplatform.lib import bundles
from aiplatform.lib.encodings import MIN_BYTES, Encoding, choose, compress_file, is_compressible

log = logging.getLogger(__name__)

KEPT_FOR_A_YEAR = "max-age=31536000, public, immutable"
MAX_BUNDLES = 256  # that a process keeps; pages name fewer than a hundred
MAX_STORED_FILES = 2000
STORED_FOR_S = 30 * 86400.0  # what an earlier version left behind goes after this time
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_FORMAT = Path(bundles.__file__).read_bytes()  # the content of bundles depends on it, too


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


@cache
def digests() -> dict[str, str]:
    """Return the digest of every static file by its path below `/static/`, as of the first call in this process."""
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
    return blake2b(repr(sorted(digests().items())).encode() + _FORMAT, digest_size=8).hexdigest()


@dataclass(frozen=True)
class Bundle:
    """A bundle as it is sent; not `is_current` where a file changed after this process read it first."""

    content: bytes
    is_current: bool


_bundles: dict[tuple[str, ...], Bundle] = {}


def bundle(names: tuple[str, ...]) -> Bundle:
    """Return the bundle of these files, see bundles.build.

    Raises:
        BundleError: the files cannot be bundled, or one does not exist.
    """
    if built := _bundles.get(names):
        return built
    is_current = True

    def read(name: str) -> str:
        nonlocal is_current
        expected = digests().get(name)  # before finders are asked: the name may come from a request
        path = finders.find(name) if expected else None
        if not isinstance(path, str):
            raise bundles.BundleError(f"There is no static file {name}.")
        content = Path(path).read_bytes()
        is_current &= expected == _digest(content)
        return content.decode()

    built = Bundle(bundles.build(names, read).encode(), is_current)
    if is_current and len(_bundles) < MAX_BUNDLES:
        _bundles[names] = built
    return built


def bundle_url(names: tuple[str, ...]) -> str | None:
    """Address of the bundle of these files; None where they have to be loaded one by one."""
    try:
        bundle(names)
    except bundles.BundleError as error:
        log.error("static files %s are loaded one by one: %s", ", ".join(names), error)
        return None
    return f"{settings.STATIC_URL}{fingerprint()}/{bundles.address(names)}"


@lru_cache(maxsize=256)
def _compressed(digest: str, encoding: Encoding, content: _Content) -> bytes:
    """Return the content compressed, from the folder of this machine where it is there already."""
    folder = settings.RUN_DIR / "static"
    path = folder / f"{digest}.{encoding}"
    with contextlib.suppress(OSError):
        return path.read_bytes()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_full = _remove_old_files(folder) >= MAX_STORED_FILES
    except OSError:
        is_full = True
    data = compress_file(content.data, encoding, fast=is_full)
    if not is_full:
        draft = folder / f"{digest}.{encoding}.{os.getpid()}.{time.monotonic_ns()}.part"
        try:  # written aside and renamed: other processes see the whole file or none
            draft.write_bytes(data)
            draft.replace(path)
        except OSError:  # the disk is full: this process keeps what it has
            draft.unlink(missing_ok=True)
    return data


class _Content:
    """Bytes with their digest. All compare equal, so that caches compare the digest alone."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content)

    def __hash__(self) -> int:
        return 0


def _remove_old_files(folder: Path) -> int:
    """Delete what was written long ago, and return how many files are left."""
    oldest = time.time() - STORED_FOR_S
    left = 0
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            if file.stat().st_mtime < oldest:
                file.unlink()
            else:
                left += 1
    return left


def _compress(answer: HttpResponse, digest: str, request: HttpRequest) -> None:
    """Send the content in an encoding that the client accepts; `digest` identifies the content."""
    if len(answer.content) < MIN_BYTES or not is_compressible(answer.headers.get("Content-Type", "")):
        return
    patch_vary_headers(answer, ["Accept-Encoding"])
    if encoding := choose(request.headers.get("Accept-Encoding", "")):
        answer.content = _compressed(digest, encoding, _Content(answer.content))
        answer["Content-Encoding"] = encoding
        answer["Content-Length"] = str(len(answer.content))


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
        path, requested = request.path_info, ""
        if path.startswith(self.static_prefix):
            first, _slash, rest = path.removeprefix(self.static_prefix).partition("/")
            if _FINGERPRINT.fullmatch(first):
                path, requested = self.static_prefix + rest, first
        if requested and (names := bundles.split_address(path.removeprefix(self.static_prefix))):
            return self._serve_bundle(names, request, is_current=requested == fingerprint())
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        if file is None:
            return self.get_response(request)
        if not requested:
            return self._serve_plain(file, request)
        head = request.method == "HEAD"
        answer = self._answer(file, "GET" if head else request.method, {})  # no conditions, no ranges: whole
        # Another version's page asks for its own files while servers are updated one by one, and files may change
        # under a running process: such an answer must not be kept under this address.
        expected = digests().get(path.removeprefix(self.static_prefix)) if requested == fingerprint() else None
        digest = _digest(answer.content)
        answer["Cache-Control"] = KEPT_FOR_A_YEAR if expected == digest else "no-cache"
        if answer.status_code == 200:
            _compress(answer, digest, request)
        if head:
            answer.content = b""
        return answer

    def _serve_plain(self, file: Any, request: HttpRequest) -> HttpResponse:
        """Serve a file under its address without fingerprint: with conditions and ranges, and whole files compressed.

        The ETag of a compressed response is weak, as it names content and not bytes; parts are never compressed.
        """
        meta = request.META
        if (etag := meta.get("HTTP_IF_NONE_MATCH", "")).startswith("W/"):
            meta = {**meta, "HTTP_IF_NONE_MATCH": etag.removeprefix("W/")}
        head = request.method == "HEAD"
        answer = self._answer(file, "GET" if head else request.method, meta)
        patch_vary_headers(answer, ["Accept-Encoding"])
        if answer.status_code == 200:
            _compress(answer, _digest(answer.content), request)
            if "Content-Encoding" in answer and "ETag" in answer:
                answer["ETag"] = f"W/{answer['ETag']}"
        if head:
            answer.content = b""
        return answer

    def _serve_bundle(self, names: tuple[str, ...], request: HttpRequest, *, is_current: bool) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        try:
            built = bundle(names)
        except bundles.BundleError:
            return self.get_response(request)
        kind = "text/javascript" if names[0].endswith(".js") else "text/css"
        answer = HttpResponse(built.content, content_type=f'{kind}; charset="utf-8"')
        answer["Cache-Control"] = KEPT_FOR_A_YEAR if is_current and built.is_current else "no-cache"
        answer["Content-Length"] = str(len(built.content))
        _compress(answer, _digest(built.content), request)
        if request.method == "HEAD":
            answer.content = b""
        return answer

    def immutable_file_test(self, path: str, url: str) -> bool:
        """No file's own name carries a hash."""
        return False

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
