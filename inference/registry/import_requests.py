"""Read the source and the declared properties of a model to import from the fields of an API request."""

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

SOURCE_FIELDS = ("file", "upload", "path", "job")
VALID_COMBINATIONS = ({"file"}, {"upload"}, {"path"}, {"job"}, {"path", "job"})  # "path" with "job": in its outputs


def pop_declared(fields: dict[str, Any]) -> Declared:
    """Remove the properties of the model that the user declares (task, labels, …) from `fields` and return them."""
    values = {name: fields.pop(name) for name in vars(NOTHING) if name in fields}
    return Declared(**values | {"labels": labels_of(values.get("labels", ""))})


@contextmanager
def open_source(
    user: User, fields: dict[str, Any], declared: Declared, *, is_trial: bool = False
) -> Iterator[ModelSource]:
    """Open the model files that the request contains or refers to, and remove these fields from `fields`.

    Args:
        is_trial: the model is only checked, not imported, see `imports.from_upload`.

    Raises:
        Invalid: the request has no source or contradicting ones, or the upload is not complete.
        DomainError: see `imports.from_path`.
    """
    source: dict[str, Any] = {name: fields.pop(name) for name in SOURCE_FIELDS if name in fields}
    if set(source) not in VALID_COMBINATIONS:
        message = _("Send a file, the id of a completed upload, or a path in your home or in the outputs of a job.")
        raise Invalid(message, field="file")
    if {"path", "job"} & set(source):
        yield imports.from_path(user, source.get("path", ""), source.get("job"))
    elif "file" in source:
        with on_disk(source["file"]) as (archive, filename):
            yield imports.from_upload(archive, filename, declared, tried=is_trial)
    else:
        upload = require_complete(source["upload"], "upload")
        yield imports.from_upload(upload.file, upload.filename, declared, tried=is_trial)


def require_complete(upload: Upload, field: str) -> Upload:
    """Return the upload if all of its data was received.

    Args:
        field: field of the request that the error names.

    Raises:
        Invalid: data is missing.
    """
    if upload.state == Upload.State.OPEN:
        raise Invalid(_("This upload is not complete yet."), field=field)
    return upload
