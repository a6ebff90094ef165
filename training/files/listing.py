"""What lies in a folder, sorted and in pages."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import times, trees
from aiplatform.lib.errors import Invalid
from aiplatform.lib.ordering import Ordering
from training.files import names
from training.files.places import Place, folder_of, refusals

ORDERING = Ordering("name", name="name", size="size_bytes", changed="changed_at")
MOST = 50_000
"""Entries of one folder that are read; a training may leave millions."""
PAGE = 200
FOLDER, FILE, LINK, OTHER = "folder", "file", "link", "other"
KIND_WORDS = {FOLDER: _("Folder"), FILE: _("File"), LINK: _("Link"), OTHER: _("Special file")}


@dataclass(frozen=True)
class Entry:
    """One thing in a folder; a link is shown as what it is, never as what it points at."""

    name: str
    path: str  # as `names` writes it
    kind: str
    size_bytes: int
    changed_at: datetime

    @property
    def is_folder(self) -> bool:
        return self.kind == FOLDER

    @property
    def is_file(self) -> bool:
        return self.kind == FILE

    @property
    def kind_label(self) -> str:
        return str(KIND_WORDS[self.kind])


@dataclass(frozen=True)
class Listing:
    """Entries of a folder in order."""

    entries: Sequence[Entry]
    more: bool  # there are others that were not read


def look(place: Place, *, order: str = ORDERING.default, words: str = "") -> Listing:
    """The entries of a folder whose names have each of the words, folders first.

    Raises:
        NotFound, Closed, Invalid: it is none, or cannot be read.
    """
    with folder_of(place) as folder:
        read = [_entry(place, name, info) for name, info in islice(trees.entries(folder), MOST + 1)]
    sought = words.lower().split()
    found = [entry for entry in read[:MOST] if all(word in entry.name.lower() for word in sought)]
    return Listing(_sorted(found, order), more=len(read) > MOST)


def about(place: Place) -> Entry:
    """What stands at a path.

    Raises:
        NotFound, Closed, Invalid: nothing, or it cannot be seen.
    """
    if not place.inside:
        with folder_of(place) as folder:
            return _entry(place, b"", os.fstat(folder))
    *way, name = place.inside
    with refusals(), trees.opened(place.home, way) as folder:
        info = trees.about(folder, name)
    return Entry(place.name, place.path, _kind(info), info.st_size, times.moment(info.st_mtime))


def page_of(listing: Listing, number: int) -> tuple[Sequence[Entry], bool]:
    """Entries of one page, from 1 on, and whether there is another."""
    begin = (number - 1) * PAGE
    return listing.entries[begin : begin + PAGE], len(listing.entries) > begin + PAGE


def number_of(text: str) -> int:
    """A page's number as it stands in an address; 1 for none.

    Raises:
        Invalid: it is no number.
    """
    if not text:
        return 1
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)):
        raise Invalid(_("page is a whole number from 1 on."), field="page")
    return int(text)


def _entry(place: Place, name: bytes, info: os.stat_result) -> Entry:
    here = place.below(name) if name else place
    try:
        changed = times.moment(info.st_mtime)
    except (OverflowError, ValueError, OSError):  # a job may set any year
        changed = times.moment(0)
    return Entry(names.shown(name), here.path, _kind(info), info.st_size, changed)


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
