"""What people change in their home: folders made, things moved, deleted and brought.

New and deleted files pass through folders next to the homes that no job sees, so that no job interferes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import file_names, trees
from aiplatform.lib.errors import Invalid, NameTaken, NotFound
from aiplatform.lib.files import remove_tree, sha256_of
from aiplatform.lib.trees import Parts
from datasets.files import homes, journal, listing, paths, share_paths, usage
from datasets.files.listing import Entry
from datasets.models import Upload
from datasets.services import uploads
from workers.execution import job_users

GOING_S = 3.0
RETENTION_S = 24 * 3600.0
"""What a process that died left half-way is kept this long."""


def make_folder(user: User, path: str) -> Entry:
    """Create a folder, and its missing parents.

    Raises:
        Invalid, NameTaken, Closed.
    """
    location = paths.own(user, path)
    if not location.parts:
        raise Invalid(_("Enter a name without a slash."), field="name")
    with paths.refusals(), _made(user, location.parts[:-1]) as above:
        name = file_names.check_new(location.parts[-1])
        try:
            os.close(_new_folder(user, above, name))
        except FileExistsError:
            raise NameTaken(_("A file or folder with this name already exists. Choose another name.")) from None
    return listing.get_entry(location)


def move(user: User, path: str, to: str, *, replace: bool = False) -> Entry:
    """Give something another path: another name, another folder, or both. Shares go with it.

    Raises:
        NotFound, NameTaken, Invalid, Closed.
    """
    source, target = paths.own(user, path), paths.own(user, to)
    if not source.parts or not target.parts:
        raise Invalid(_("The home folder itself cannot be moved."), field="path")
    if source.parts == target.parts:
        return listing.get_entry(source)
    if target.parts[-1] != source.parts[-1]:
        file_names.check_new(target.parts[-1])
    with (
        paths.refusals(),
        trees.opened(source.home, source.parts[:-1]) as here,
        trees.opened(target.home, target.parts[:-1]) as there,
    ):
        journal.settle_left(user)
        what = journal.identity(here, source.parts[-1])
        with journal.noted(user, source.path, target.path, what):
            trees.move(here, source.parts[-1], there, target.parts[-1], replace=replace)
    return listing.get_entry(target)


def delete(user: User, path: str) -> None:
    """Delete a file, a link, or a folder with its content. The target of a link stays.

    Raises:
        NotFound, Invalid, Closed.
    """
    location = paths.own(user, path)
    if not location.parts:
        raise Invalid(_("The home folder itself cannot be moved."), field="path")
    gone = secrets.token_hex(16).encode()
    with (
        paths.refusals(),
        _beside(".deleted") as trash,
        trees.opened(location.home, location.parts[:-1]) as above,
    ):
        journal.settle_left(user)
        with journal.noted(user, location.path, "", journal.identity(above, location.parts[-1])):
            trees.move_out(above, location.parts[-1], trash, gone)
        usage.mark_outdated(user)
        with contextlib.suppress(OSError):  # a sweep goes on
            trees.remove(trash, gone, until=time.monotonic() + GOING_S)


def check_upload_target(user: User, path: str, size_bytes: int, *, replace: bool = False) -> Parts:
    """Raise before an upload the errors that `store_upload` would raise after it.

    Raises:
        HomeFull, NameTaken, Invalid.
    """
    location = paths.own(user, path)
    if not location.parts:
        raise Invalid(_("Enter a name without a slash."), field="name")
    for name in location.parts:
        file_names.check_new(name)
    usage.require_room(user, size_bytes)
    try:
        existing = listing.get_entry(location)
    except NotFound:
        return location.parts
    if existing.is_folder or not replace:
        raise NameTaken(_("“%(name)s” already exists.") % {"name": location.name[:200]}, field="path")
    return location.parts


def store_upload(user: User, upload_id: str, path: str, *, replace: bool = False) -> Entry:
    """Move an uploaded file to its path and delete the upload; missing parent folders are created.

    Raises:
        NotFound: no such upload, or another request took it.
        Invalid: not whole yet, or other bytes than announced.
        HomeFull, NameTaken, Closed, DiskFull.
    """
    upload = uploads.require(user, upload_id)
    parts = check_upload_target(user, path, upload.length, replace=replace)
    if upload.sha256 and sha256_of(upload.file) != upload.sha256:
        raise Invalid(_("The file differs from the announced file: the checksum does not match."), field="upload")
    with paths.refusals(), trees.opened(upload.folder) as arrived:
        _move_into_home(user, arrived, b"data", parts, replace=replace)
    Upload.objects.filter(pk=upload.pk).delete()
    remove_tree(upload.folder)
    usage.count_file(user, upload.length)
    return listing.get_entry(paths.own(user, path))


def store_sent_file(user: User, sent: UploadedFile, path: str, *, replace: bool = False) -> Entry:
    """Bring a file that came with the request itself.

    Raises:
        HomeFull, NameTaken, Closed, DiskFull, Invalid.
    """
    parts = check_upload_target(user, path, sent.size or 0, replace=replace)
    with paths.refusals(), _beside(".incoming") as incoming:
        name = secrets.token_hex(16).encode()
        try:
            with _written(incoming, name) as file:
                for chunk in sent.chunks():
                    file.write(chunk)
            _move_into_home(user, incoming, name, parts, replace=replace)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=incoming)
    usage.count_file(user, sent.size or 0)
    return listing.get_entry(paths.own(user, path))


def hand_over(giver: User, taker: User) -> None:
    """Move the home of `giver` into the home of `taker`, in a folder with the giver's name."""
    with (
        transaction.atomic(),
        paths.refusals(),
        trees.opened(homes.home_of(giver).parent) as all_homes,
        trees.opened(homes.home_of(taker)) as home,
    ):
        name = os.fsencode(homes.path_of(giver).name)
        free = name
        while _is_there(home, free):
            free = name + b"_" + secrets.token_hex(2).encode()
        trees.move(all_homes, name, home, free)
        share_paths.delete_below(giver, "")
        uid = job_users.uid_of(taker.pk)
        if uid:
            with trees.opened(home, (free,)) as moved:
                trees.change_owner(moved, uid)
    for person in (giver, taker):
        usage.mark_outdated(person)


def sweep() -> None:
    """Go on deleting what took too long, and remove what a process that died was bringing."""
    journal.settle_left()
    until = time.monotonic() + 10 * GOING_S
    with _beside(".deleted") as trash:
        for name, _info in list(trees.entries(trash)):
            with contextlib.suppress(OSError):
                trees.remove(trash, name, until=until)
    with _beside(".incoming") as incoming:
        for name, info in list(trees.entries(incoming)):
            if info.st_mtime < time.time() - RETENTION_S:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=incoming)


def _move_into_home(user: User, source: int, name: bytes, parts: Parts, *, replace: bool) -> None:
    """Move a file of the platform into a home, with the permissions of the user's own files."""
    descriptor = trees.open_file(source, name)
    try:
        uid = job_users.uid_of(user.pk)
        os.fchmod(descriptor, 0o644)
        if uid:
            os.fchown(descriptor, uid, uid)
        with _made(user, parts[:-1]) as folder:
            try:
                trees.move(source, name, folder, parts[-1], replace=replace)
            except OSError as exc:
                if exc.errno != errno.EXDEV:
                    raise
                _carry(user, descriptor, folder, parts[-1], replace=replace)
    finally:
        os.close(descriptor)


def _carry(user: User, descriptor: int, folder: int, name: bytes, *, replace: bool) -> None:
    """Copy to the disk of the homes first, where a file can then appear at once and whole."""
    with _beside(".incoming") as incoming:
        copy = secrets.token_hex(16).encode()
        try:
            with _written(incoming, copy) as file, os.fdopen(os.dup(descriptor), "rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                if uid := job_users.uid_of(user.pk):
                    os.fchown(file.fileno(), uid, uid)
            trees.move(incoming, copy, folder, name, replace=replace)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(copy, dir_fd=incoming)


@contextmanager
def _made(user: User, parts: Parts) -> Iterator[int]:
    """A descriptor of a folder in a home, which is made with those above it where it is not there."""
    here = trees.open_folder(homes.home_of(user))
    try:
        for name in parts:
            try:
                below = trees.open_folder(here, (name,))
            except FileNotFoundError:
                below = _new_folder(user, here, file_names.check_new(name, field="path"))
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _new_folder(user: User, above: int, name: bytes) -> int:
    """Make a folder that belongs to its person; returns its descriptor."""
    os.mkdir(name, 0o755, dir_fd=above)
    made = trees.open_folder(above, (name,))
    os.fchmod(made, 0o755)
    if uid := job_users.uid_of(user.pk):
        os.fchown(made, uid, uid)
    return made


@contextmanager
def _written(folder: int, name: bytes) -> Iterator[IO[bytes]]:
    descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        yield file


@contextmanager
def _beside(name: str) -> Iterator[int]:
    """A folder of the platform's own on the disk of the homes; no username begins with a dot there."""
    folder = Path(homes.all_homes()) / name
    folder.mkdir(mode=0o700, exist_ok=True)
    with trees.opened(folder) as descriptor:
        yield descriptor


def _is_there(folder: int, name: bytes) -> bool:
    try:
        trees.stat_entry(folder, name)
    except FileNotFoundError:
        return False
    return True
