"""Resolution of paths: in the reader's own home, or in a folder that is shared with them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import disk, file_names, trees
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, NotFound
from aiplatform.lib.files import OutsideRoot
from aiplatform.lib.trees import Parts
from datasets.files import homes, journal
from datasets.files.models import SharedFolder


class Closed(DomainError, code="closed", status=403):
    """The file system lets the platform not in, or not write."""


@dataclass(frozen=True)
class Location:
    """A path that a user may see in a home: anywhere in the own one, or in a shared folder of another user."""

    home: Path
    base: Parts  # the shared folder; nothing for the own home
    parts: Parts
    share: SharedFolder | None = None

    @property
    def inside(self) -> Parts:
        """The path below the home."""
        return self.base + self.parts

    @property
    def path(self) -> str:
        """The path as its reader knows it."""
        return file_names.shown_path(self.parts)

    @property
    def name(self) -> str:
        """The last step; of a shared folder itself its name."""
        return file_names.shown(self.inside[-1]) if self.inside else ""

    @property
    def above(self) -> Location:
        """The folder it is in."""
        return replace(self, parts=self.parts[:-1])

    def below(self, name: bytes) -> Location:
        """Something in this folder."""
        return replace(self, parts=(*self.parts, name))


def own(user: User, path: str = "") -> Location:
    """A path in the home of a person.

    Raises:
        Invalid: it leads out.
    """
    return Location(homes.home_of(user), (), file_names.parse(path))


def readable_by(user: User, path: str = "", share: int | None = None) -> Location:
    """Resolve the path that a reader names: in a folder shared with them, else in their home.

    Raises:
        Invalid: it leads out.
        NotFound: no such share, or it is not for this person; the sentence is the same.
    """
    if share is None:
        return own(user, path)
    rows = SharedFolder.objects.visible_to(user).select_related("owner").filter(pk=share, owner__deleted_at=None)
    row = rows.first()
    if row is not None and journal.settle_left(row.owner):
        row = rows.first()
    if row is not None and journal.is_unsettled(row.owner, row.path):
        raise NotFound(_("This folder is being moved or deleted. Try again in a moment."))
    if row is None:
        raise NotFound(_("This shared folder does not exist any more."))
    return Location(homes.path_of(row.owner), file_names.parse(row.path), file_names.parse(path), row)


@contextmanager
def open_folder(location: Location) -> Iterator[int]:
    """Yield a descriptor of the folder at a location.

    Raises:
        DomainError: see `refusals`.
    """
    with refusals(), trees.opened(location.home, location.inside) as folder:
        yield folder


@contextmanager
def refusals() -> Iterator[None]:
    """Say what the file system refuses as what a person can do about it.

    Raises:
        NotFound, NameTaken, Closed, Invalid, DiskFull.
    """
    try:
        yield
    except OutsideRoot as exc:
        raise Invalid(exc.message, field="path") from None
    except OSError as exc:
        refusal = _refusal(exc)
        if refusal is None:
            raise
        raise refusal from None


def _refusal(exc: OSError) -> DomainError | None:
    if disk.is_full(exc):
        return disk.DiskFull()
    match exc.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ESTALE:
            return NotFound(_("Nothing found at this path."))
        case errno.EEXIST | errno.ENOTEMPTY | errno.EISDIR:
            return NameTaken(
                _("A file or folder with this name already exists. Choose another name, or delete it first.")
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Closed(
                _("The permissions of this file or folder deny access to the platform. Change them from a job: chmod.")
            )
        case errno.ENAMETOOLONG:
            return Invalid(_("A name can have at most %(most)s bytes.") % {"most": file_names.MAX_BYTES}, field="name")
        case errno.EINVAL:
            return Invalid(_("A folder cannot be moved into itself."), field="folder")
    return None
