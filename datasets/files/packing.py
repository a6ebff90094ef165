"""A folder as one zip that is made while it is sent."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from django.utils.translation import gettext as _

from aiplatform.lib import file_names, trees
from aiplatform.lib.errors import Invalid, NotFound
from datasets.files.paths import Location, open_folder

MAX_ENTRIES = 200_000
MAX_DEPTH = 256
MAX_DURATION_S = 30.0


def entries(location: Location) -> list[tuple[str, Path, str]]:
    """Return all files of a folder as (name in the zip, root, path below it); links and special files are left out.

    Raises:
        NotFound: no folder, or no files in it.
        Invalid: too many, or too deep.
        Closed.
    """
    try:
        with open_folder(location) as folder:
            files = sorted(_files(location, folder))
    except trees.TooLong:
        raise Invalid(_too_many()) from None
    if not files:
        raise NotFound(_("This folder is empty."))
    return files


def _files(location: Location, root: int) -> Iterator[tuple[str, Path, str]]:
    for count, (folder, name, info) in enumerate(trees.walk(root, until=time.monotonic() + MAX_DURATION_S)):
        if count >= MAX_ENTRIES:
            raise Invalid(_too_many())
        if folder.depth > MAX_DEPTH:
            raise Invalid(_("Folders are nested more than %(limit)s levels deep.") % {"limit": MAX_DEPTH})
        if stat.S_ISREG(info.st_mode):
            parts = (*folder.parts(), name)
            yield file_names.for_archive(parts), location.home, os.fsdecode(b"/".join((*location.inside, *parts)))


def _too_many() -> str:
    return _("More than %(limit)s files: download its folders individually.") % {"limit": f"{MAX_ENTRIES:,}"}
