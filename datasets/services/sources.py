"""Files of an import that lie on the platform already: rooms above say where, and they are copied, not uploaded.

A room registers a source from its app's `AppConfig.ready()`, and names it in the metadata of an upload without bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.archive_names import safe_name
from aiplatform.lib.archives import Limits, Report
from aiplatform.lib.errors import Invalid
from aiplatform.lib.files import OutsideRoot, copy_data, open_beneath
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import Message
from datasets.models import Upload
from datasets.services import uploads

KEY = "source"  # in the metadata of an upload


@dataclass(frozen=True)
class Source:
    """Where the files of an import lie.

    Attributes:
        name: as in the metadata.
        files: (root, path below it, name in the dataset) of each, for what the metadata say. Anybody can write
            metadata, so it asks whether this person may read them. None: the upload has the bytes.
        story: what a version of them says of its making, from the same metadata; None: what was imported.
    """

    name: str
    files: Callable[[User, Mapping[str, str]], Iterator[tuple[Path, str, str]]] | None
    story: Callable[[Mapping[str, str]], Message] | None = None


CHECK_INTERVAL_BYTES = 64 << 20
"""Bytes copied until the owner's room is looked at again: what was announced is not what is there."""

SOURCES: Registry[Source] = Registry("source of imports", name=lambda source: source.name)


def for_upload(upload: Upload) -> Source | None:
    """Return the source that an upload names; None for an upload with data of its own."""
    return SOURCES.find(str(upload.metadata.get(KEY, "")))


def copy_files(source: Source, upload: Upload, into: Path, limits: Limits, tick: Callable[[int], object]) -> Report:
    """Copy the files of a source into a folder; links and special files are left out.

    Raises:
        Invalid: they are more than one import may hold.
        TooLarge, DiskFull: there is no room for them.
        DomainError: the person may not read them, or they are gone.
    """
    report, checked_bytes = Report(), 0
    assert source.files is not None
    into.mkdir(parents=True)
    for root, path, name in source.files(upload.owner, upload.metadata):
        safe = "/".join(safe_name(part) for part in name.split("/"))
        target = into / safe
        try:
            descriptor = open_beneath(root, path)
        except (OutsideRoot, FileNotFoundError, NotADirectoryError):
            continue  # it went while we looked
        with os.fdopen(descriptor, "rb") as file:
            report.files += 1
            report.size_bytes += os.fstat(file.fileno()).st_size
            if report.files > limits.max_files or report.size_bytes > limits.max_bytes:
                raise Invalid(_("The data exceeds the limit of one import. Import it folder by folder."))
            if report.size_bytes - checked_bytes >= CHECK_INTERVAL_BYTES:
                checked_bytes = report.size_bytes
                uploads.require_room(owner=upload.owner, size_bytes=checked_bytes)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as copy:
                copy_data(file, copy)
        if safe != name:
            report.renamed.append((name, safe))
        tick(report.files)
    return report
