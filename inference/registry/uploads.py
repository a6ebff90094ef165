"""Uploaded bytes as a file one can open by name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile


@contextmanager
def on_disk(upload: UploadedFile) -> Iterator[tuple[Path, str]]:
    """Path and original name of an uploaded file; small ones that came into memory are written out."""
    name = upload.name or "model"
    if isinstance(upload, TemporaryUploadedFile):
        yield Path(upload.temporary_file_path()), name
        return
    with tempfile.NamedTemporaryFile(prefix="aip-") as file:
        for chunk in upload.chunks():
            file.write(chunk)
        file.flush()
        yield Path(file.name), name
