"""Responses with dataset bytes. Callers have checked that the person may see them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _

from aiplatform.lib.archives import tar_header
from aiplatform.lib.downloads import BLOCK, attachment, send_parts
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath
from aiplatform.lib.zips import send_zip
from datasets.formats import exports, stored
from datasets.formats.neutral import SHAPES
from datasets.models import Asset, DatasetVersion
from datasets.services import thumbnails
from datasets.storage import dataset_paths, image_files

#: No stored byte is ever run: not as a script, not as a page, not as something else than it was checked to be.
_LOCKED = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}


def image_response(request: HttpRequest, asset: Asset) -> HttpResponseBase:
    """Send the original bytes, typed by content; what is no image any more is only offered as a download."""
    etag = f'"{asset.sha256}"'
    if request.headers.get("If-None-Match") == etag:
        return _add_cache_headers(HttpResponse(status=304), etag)
    try:
        with dataset_paths.open_image(asset) as file:
            data = file.read()
    except (OSError, DomainError):
        raise Http404 from None
    kind = image_files.content_type(data[:16])
    response = HttpResponse(data, content_type=kind or "application/octet-stream", headers=_LOCKED)
    name = asset.path.rpartition("/")[2]
    response["Content-Disposition"] = attachment(name, inline=kind is not None)
    return _add_cache_headers(response, etag)


def thumbnail_response(request: HttpRequest, asset: Asset) -> HttpResponseBase:
    """Send a small view: WebP made ahead or now, or the original where that is small itself."""
    if thumbnails.is_small(asset):
        return image_response(request, asset)
    etag = f'"t-{asset.sha256}"'
    if request.headers.get("If-None-Match") == etag:
        return _add_cache_headers(HttpResponse(status=304), etag)
    try:
        data = thumbnails.read(asset)
    except (image_files.BadImage, OSError, DomainError):
        raise Http404 from None
    return _add_cache_headers(HttpResponse(data, content_type="image/webp", headers=_LOCKED), etag)


def covers_response(request: HttpRequest, assets: Sequence[Asset | None]) -> HttpResponseBase:
    """Send the thumbnails of these images as one image, a column of tiles; the tile of None is empty."""
    content = ",".join(asset.sha256 if asset else "" for asset in assets)
    etag = f'"c-{hashlib.sha256(content.encode()).hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == etag:
        return _add_cache_headers(HttpResponse(status=304), etag)
    return _add_cache_headers(HttpResponse(thumbnails.sheet(assets), content_type="image/webp", headers=_LOCKED), etag)


def _add_cache_headers(response: HttpResponse, etag: str) -> HttpResponse:
    response["ETag"] = etag
    response["Cache-Control"] = "private, max-age=300"
    patch_vary_headers(response, ["Cookie", "Authorization"])
    return response


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a tar and its position in the stream."""

    begin: int
    header: bytes
    root: Path
    path: str
    size: int

    @property
    def end(self) -> int:
        return self.begin + len(self.header) + -(-self.size // 512) * 512


def version_files(version: DatasetVersion) -> list[tuple[str, Path, str]]:
    """(name in an archive, root, path below it) of everything a version consists of."""
    own = [name for name in ("dataset.json", "manifest.jsonl", "annotations.json") if (version.path / name).is_file()]
    paths = version.assets.order_by("pk").values_list("path", flat=True)
    return [(name, version.path, name) for name in own] + [
        (f"images/{path}", version.images_path, path) for path in paths.iterator(chunk_size=5000)
    ]


def download(request: HttpRequest, version: DatasetVersion, form: str) -> HttpResponseBase:
    """Send the whole version, or the part that `Range` requests: its bytes never change.

    Args:
        form: "tar", "zip" (both as the version is kept, with COCO annotations), or a name of formats.exports.
    """
    if form == "tar":
        return _tar(request, version)
    if form in exports.FORMATS:
        pieces = exports.FORMATS.get(form).pieces(source_of(version))
        files = (
            (piece.name, version.images_path, piece.image) if piece.image else (piece.name, piece.data)
            for piece in pieces
        )
        return send_zip(request, files, f"{archive_name(version)}-{form}.zip")
    return send_zip(request, version_files(version), f"{archive_name(version)}.zip")


def download_forms(version: DatasetVersion) -> list[str]:
    """What `download` takes for this version, the usual one first."""
    return ["tar", "zip", *(exports.FORMATS.names() if version.task == SHAPES else [])]


def download_choices(version: DatasetVersion) -> list[tuple[str, str, str]]:
    """Return (form, label, note) of `download_forms`, for users who choose."""
    text = _("All files as stored, with annotations as COCO.")
    choices = [("tar", "tar", text), ("zip", "zip", text)]
    formats = (exports.FORMATS.find(form) for form in download_forms(version))
    return choices + [(form.name, form.label, str(form.loses)) for form in formats if form]


def source_of(version: DatasetVersion) -> exports.Source:
    """The version as formats of formats.exports read it."""

    def images() -> Iterator[exports.Drawn]:
        for line, image, objects in stored.lines(version.path):
            extra = {name: value for name, value in (image or {}).items() if name not in stored.IMAGE_FIELDS}
            size = (line["width"], line["height"])
            yield exports.Drawn(line["path"], *size, line["split"], image is not None, objects, extra)

    head = stored.head(version.path)
    classes = head.pop("categories", None) or version.classes
    return exports.Source(str(version), classes, images, head=head)


def _tar(request: HttpRequest, version: DatasetVersion) -> HttpResponseBase:
    parts, total = _layout(version)
    return send_parts(
        request,
        f"{archive_name(version)}.tar",
        "application/x-tar",
        f'"{version.manifest_sha256}"',
        total,
        lambda begin, end: _tar_bytes(parts, begin, end),
    )


def archive_name(version: DatasetVersion) -> str:
    return f"{version.dataset.name}-v{version.number}"


def _layout(version: DatasetVersion) -> tuple[list[_Part], int]:
    top, modified = archive_name(version).replace("/", "_"), version.created_at.timestamp()
    parts, at = [], 0
    for name, root, path in version_files(version):
        size = (root / path).stat().st_size
        part = _Part(at, tar_header(f"{top}/{name}", size, modified), root, path, size)
        parts.append(part)
        at = part.end
    return parts, at + 1024


def _tar_bytes(parts: list[_Part], begin: int, end: int) -> Generator[bytes, None, None]:
    """Bytes `begin` to `end` of the stream; files before it are not opened."""
    at = begin
    for part in parts:
        if part.end <= at:
            continue
        if part.begin >= end:
            break
        if at < part.begin + len(part.header):
            data = part.header[at - part.begin : end - part.begin]
            yield data
            at += len(data)
            if at >= end:
                return
        with os.fdopen(open_beneath(part.root, part.path), "rb") as file:
            file.seek(at - part.begin - len(part.header))
            left = min(part.size - file.tell(), end - at)
            while left > 0:
                block = file.read(min(BLOCK, left))
                if not block:
                    raise OSError(f"{part.path} is shorter than it was")
                yield block
                at, left = at + len(block), left - len(block)
        padding = min(part.end, end) - at
        if padding > 0:
            yield bytes(padding)
            at += padding
    if at < end:
        yield bytes(end - at)
