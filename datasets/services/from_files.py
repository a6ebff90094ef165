"""Datasets of files that are on the server already: a source copies them, nothing is uploaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import Dataset, Import, Upload
from datasets.services import datasets, imports, sources, uploads


def start(
    *,
    source: sources.Source,
    origin: Mapping[str, str],
    title: str,
    filename: str,
    by: User,
    name: str = "",
    field: str = "folder",
    **reading: Any,
) -> Import:
    """Begin to import the files that `source` gives for `origin` as a new dataset of `by`.

    Args:
        title: of the files, from which the dataset is named where `name` is "".
        filename: what the version says it was made of.
        field: of a form or request that names the files, for refusals.
        reading: further arguments of `imports.start`: wanted, split, options.

    Raises:
        Invalid, NotFound: the files cannot be read, or there are none.
        NameTaken, TooLarge, DiskFull: see `datasets.create` and `uploads.create`.
    """
    metadata = {sources.KEY: source.name, "filename": filename, **origin}
    refusals = Refusals()
    length = 0
    assert source.files is not None
    with refusals:
        length = sum(_bytes(root / path) for root, path, _name in source.files(by, metadata))
        if not length:
            raise Invalid(_("The folder is empty. Choose a job, or a folder, with files."), field=field)
    with refusals:
        taken = set(Dataset.objects.visible_to(by).values_list("name", flat=True))
        name = name or titles.derive_name(title, taken=taken, room=datasets.NAME_MAX)
        datasets.check(owner=by, name=name)
    refusals.end()
    with transaction.atomic():
        upload = uploads.create(owner=by, length=length, metadata=metadata)
        Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)  # nothing is sent: it is here
        dataset = datasets.create(owner=by, name=name, intro="")
        arguments: dict[str, Any] = {"wanted": "auto", "agreed": True, **reading}
        return imports.start(dataset=dataset, by=by, upload_id=upload.pk, creates_dataset=True, **arguments)


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # removed meanwhile
        return 0
