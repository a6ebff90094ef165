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
from datasets.files.paths import Place
from datasets.models import Import
from datasets.services import from_files, sources


def make(place: Place, *, by: User, name: str = "", **reading: Any) -> Import:
    """Begin to import what is at `place`, a folder, an archive or an image, as a new dataset of `by`.

    Args:
        place: as `paths.seen_by` gives it for `by`.
        name: of the dataset; "" takes that of the folder or file.
        reading: see `from_files.start`.

    Raises:
        NotAllowed: the user's roles show no files.
        NotFound, Closed, Invalid: nothing is there, or it cannot be read.
        NameTaken, TooLarge, DiskFull.
    """
    by.require(Action.JOBS_VIEW)
    origin = {"path": place.path} | ({"shared": str(place.share.pk)} if place.share else {})
    title = place.name.rpartition(".")[0] or place.name or by.username
    filename = place.path or place.name or "home"
    return from_files.start(
        source=SOURCE, origin=origin, title=title, filename=filename, by=by, name=name, field="path", **reading
    )


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """The files of a place; its owner may have stopped sharing it since the import was started."""
    user.require(Action.JOBS_VIEW)
    place = paths.seen_by(user, metadata.get("path", ""), ids.number(metadata.get("shared", "")))
    if place.inside and listing.about(place).is_file:
        yield place.home, os.fsdecode(b"/".join(place.inside)), file_names.for_archive(place.inside[-1:])
        return
    for name, root, path in packing.entries(place):
        yield root, path, name


SOURCE = sources.Source("home", _files)
