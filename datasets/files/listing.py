"""Entries of a folder, sorted and in pages."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import PurePosixPath

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import file_names, times, trees
from aiplatform.lib.errors import Invalid
from aiplatform.lib.ordering import Ordering
from datasets.files.paths import Location, open_folder, refusals
from datasets.formats.file_kinds import IMAGE_SUFFIXES

ORDERING = Ordering("name", name="name", size="size_bytes", changed="changed_s")
MAX_ENTRIES = 50_000
"""Entries of one folder that are read; a training may leave millions."""
PAGE = 200
ARCHIVE_SUFFIXES = {".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst"}
FOLDER, FILE, LINK, OTHER = "folder", "file", "link", "other"
KIND_LABELS = {FOLDER: _("Folder"), FILE: _("File"), LINK: _("Link"), OTHER: _("Special file")}


@dataclass(frozen=True)
class Entry:
    """One thing in a folder; a link is shown as what it is, never as what it points at."""

    name: str
    path: str  # as `file_names` writes it
    kind: str
    size_bytes: int
    changed_s: float  # since 1970

    @property
    def changed_at(self) -> datetime:
        return times.moment(self.changed_s)

    @property
    def is_folder(self) -> bool:
        return self.kind == FOLDER

    @property
    def is_file(self) -> bool:
        return self.kind == FILE

    @property
    def may_be_dataset(self) -> bool:
        """Whether the name is that of an archive or an image."""
        suffix = PurePosixPath(self.name).suffix.lower()
        return self.is_file and (suffix in ARCHIVE_SUFFIXES or suffix in IMAGE_SUFFIXES)

    @property
    def kind_label(self) -> str:
        return str(KIND_LABELS[self.kind])


@dataclass(frozen=True)
class Listing:
    """Entries of a folder in order."""

    entries: Sequence[Entry]
    more: bool  # there are others that were not read
    hidden: int = 0  # how many were left out because their names begin with a dot


def list_folder(location: Location, *, order: str = ORDERING.default, text: str = "", hides: bool = False) -> Listing:
    """List the entries of a folder whose names contain each word of `text`, folders first.

    Args:
        hides: whether to leave out entries whose names begin with a dot.

    Raises:
        NotFound, Closed, Invalid: it is none, or cannot be read.
    """
    with open_folder(location) as folder:
        names = list(islice(trees.entries(folder), MAX_ENTRIES + 1))
    sought, prefix = text.lower().split(), f"{location.path}/" if location.parts else ""
    decoded = ((file_names.shown(name), info) for name, info in names[:MAX_ENTRIES])
    entries = [
        _entry(name, prefix + name, info) for name, info in decoded if all(word in name.lower() for word in sought)
    ]
    shown = [entry for entry in entries if not (hides and entry.name.startswith("."))]
    return Listing(_sorted(shown, order), more=len(names) > MAX_ENTRIES, hidden=len(entries) - len(shown))


def get_entry(location: Location) -> Entry:
    """Return the entry at a path.

    Raises:
        NotFound, Closed, Invalid: nothing, or it cannot be seen.
    """
    if not location.inside:
        with open_folder(location) as folder:
            return _entry("", "", os.fstat(folder))
    *folders, name = location.inside
    with refusals(), trees.opened(location.home, folders) as folder:
        info = trees.stat_entry(folder, name)
    return _entry(location.name, location.path, info)


def page_of(listing: Listing, number: int) -> tuple[Sequence[Entry], bool]:
    """Entries of one page, from 1 on, and whether there is another."""
    begin = (number - 1) * PAGE
    return listing.entries[begin : begin + PAGE], len(listing.entries) > begin + PAGE


def parse_page(text: str) -> int:
    """Parse a page number of an address; 1 for an empty text.

    Raises:
        Invalid: it is no number.
    """
    if not text:
        return 1
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)):
        raise Invalid(_("page must be an integer of at least 1."), field="page")
    return int(text)


def _entry(name: str, path: str, info: os.stat_result) -> Entry:
    return Entry(name, path, _kind(info), info.st_size, info.st_mtime)


def _kind(info: os.stat_result) -> str:
    if stat.S_ISDIR(info.st_mode):
        return FOLDER
    if stat.S_ISREG(info.st_mode):
        return FILE
    return LINK if stat.S_ISLNK(info.st_mode) else OTHER


def _sorted(entries: list[Entry], order: str) -> list[Entry]:
    column = ORDERING.column(order).removeprefix("-")
    falling = order.startswith("-")
    by_name = sorted(entries, key=lambda entry: (entry.name.lower(), entry.name), reverse=falling and column == "name")
    if column != "name":
        by_name.sort(key=lambda entry: getattr(entry, column), reverse=falling)
    return sorted(by_name, key=lambda entry: not entry.is_folder)
