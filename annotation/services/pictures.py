"""The pixels of an image to annotate: the file itself, and a small picture for lists."""

from __future__ import annotations

import io
from typing import BinaryIO

from django.http import FileResponse

from aiplatform.lib.errors import NotFound
from annotation.models import ImageTask
from datasets import storage
from datasets.pictures import BadImage
from datasets.services import thumbnails

_TYPES = {b"\xff\xd8": "image/jpeg", b"\x89P": "image/png", b"RI": "image/webp", b"BM": "image/bmp"}


def full(task: ImageTask) -> FileResponse:
    """The image as it is stored.

    Raises:
        NotFound: the file is gone or was changed into something else.
    """
    try:
        return _answer(storage.open_image(task.asset))
    except OSError:
        raise NotFound("The file of this image is not there.") from None


def small(task: ImageTask) -> FileResponse:
    """A thumbnail; the image itself where it is as small as one. Raises as `full`."""
    if thumbnails.is_small(task.asset):
        return full(task)
    try:
        return _answer(io.BytesIO(thumbnails.read(task.asset)))
    except (BadImage, OSError):
        raise NotFound("The file of this image is not there.") from None


def _answer(file: BinaryIO) -> FileResponse:
    kind = _TYPES.get(file.read(2), "application/octet-stream")
    file.seek(0)
    answer = FileResponse(file, content_type=kind)
    answer["Cache-Control"] = "private, max-age=3600"
    return answer
