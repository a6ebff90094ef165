"""Datasets of files in a home folder, or in a folder that another user shares."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import file_names, ids
from datasets.files import listing, packing, paths
from datasets.files.paths import Location
from datasets.models import Import
from datasets.services import from_files, sources


def make(location: Location, *, by: User, name: str = "", **reading: Any) -> Import:
    """Start to import a folder, an archive or an image at `location` as a new dataset of `by`.

    Args:
        location: as `paths.readable_by` returns it for `by`.
        name: of the dataset; "" takes that of the folder or file.
        reading: see `from_files.start`.

    Raises:
        NotAllowed: the user's roles show no files.
        NotFound, Closed, Invalid: nothing is there, or it cannot be read.
        NameTaken, TooLarge, DiskFull.
    """
    by.require(Action.JOBS_VIEW)
    origin = {"path": location.path} | ({"shared": str(location.share.pk)} if location.share else {})
    title = location.name.rpartition(".")[0] or location.name or by.username
    filename = location.path or location.name or "home"
    return from_files.start(
        source=SOURCE, origin=origin, title=title, filename=filename, by=by, name=name, field="path", **reading
    )


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """Yield the files of a location; its owner may have stopped sharing it since the import was started."""
    user.require(Action.JOBS_VIEW)
    location = paths.readable_by(user, metadata.get("path", ""), ids.number(metadata.get("shared", "")))
    if location.inside and listing.get_entry(location).is_file:
        yield location.home, os.fsdecode(b"/".join(location.inside)), file_names.for_archive(location.inside[-1:])
        return
    for name, root, path in packing.entries(location):
        yield root, path, name


SOURCE = sources.Source("home", _files)
