"""Where a model comes from, and what is said of it, as requests have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from datasets.models import Upload
from inference.registry import imports
from inference.registry.formats.declared import NOTHING, Declared, labels_of
from inference.registry.imports import ModelSource
from inference.registry.uploads import on_disk

ORIGINS = ("file", "upload", "path", "job")
SOURCES = ({"file"}, {"upload"}, {"path"}, {"job"}, {"path", "job"})


def declared_of(fields: dict[str, Any]) -> Declared:
    """Remove what the user declares of the model from `fields` and return it."""
    values = {name: fields.pop(name) for name in vars(NOTHING) if name in fields}
    return Declared(**values | {"labels": labels_of(values.get("labels", ""))})


@contextmanager
def open_source(
    user: User, fields: dict[str, Any], declared: Declared, *, tried: bool = False
) -> Iterator[ModelSource]:
    """Open the files that were sent or named; removes the fields that name them from `fields`.

    Raises:
        Invalid: none or several are named, or an upload is not complete.
        DomainError: see `imports.from_path`.
    """
    origins: dict[str, Any] = {name: fields.pop(name) for name in ORIGINS if name in fields}
    if set(origins) not in SOURCES:
        message = _("Send a file, the id of a finished upload, or a path in your home or in the outputs of a job.")
        raise Invalid(message, field="file")
    if {"path", "job"} & set(origins):
        yield imports.from_path(user, origins.get("path", ""), origins.get("job"))
    elif "file" in origins:
        with on_disk(origins["file"]) as (archive, filename):
            yield imports.from_upload(archive, filename, declared, tried=tried)
    else:
        upload = complete(origins["upload"], "upload")
        yield imports.from_upload(upload.file, upload.filename, declared, tried=tried)


def complete(upload: Upload, field: str) -> Upload:
    """The upload, if all of it has come.

    Raises:
        Invalid: it has not.
    """
    if upload.state == Upload.State.OPEN:
        raise Invalid(_("This upload is not complete yet."), field=field)
    return upload
