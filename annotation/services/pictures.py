"""Bytes of an image to annotate: the file itself, and a thumbnail for lists."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.translation import gettext as _

from aiplatform.lib.errors import NotFound
from annotation.models import ImageTask
from datasets.services import thumbnails
from datasets.storage import dataset_paths
from datasets.storage.image_files import BadImage

_TYPES = {b"\xff\xd8": "image/jpeg", b"\x89P": "image/png", b"RI": "image/webp", b"BM": "image/bmp"}


def full(task: ImageTask) -> HttpResponse:
    """Open the image as it is stored.

    Raises:
        NotFound: the file is gone or was changed into something else.
    """
    try:
        with dataset_paths.open_image(task.asset) as file:
            return _answer(file.read())
    except OSError:
        raise NotFound(_("The file of this image is missing.")) from None


def small(task: ImageTask) -> HttpResponse:
    """Open a thumbnail, or the image itself where it is as small. Raises as `full`."""
    if thumbnails.is_small(task.asset):
        return full(task)
    try:
        return _answer(thumbnails.read(task.asset))
    except (BadImage, OSError):
        raise NotFound(_("The file of this image is missing.")) from None


def _answer(data: bytes) -> HttpResponse:
    answer = HttpResponse(data, content_type=_TYPES.get(data[:2], "application/octet-stream"))
    answer["Cache-Control"] = "private, max-age=3600"
    return answer
