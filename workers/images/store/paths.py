"""Where images lie: engines and packed layers for all machines, boxes and unpacked layers on a machine's own disk."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from aiplatform import env
from aiplatform.lib import trees

DELETED = ".deleted"


def engine(digest: str) -> Path:
    """The folder of an engine; it is built there and stays there, since its scripts name it."""
    return Path(settings.DATA_ROOT) / "engines" / digest[:32]


def packed(image: int) -> Path:
    """The packed layer of a saved image."""
    return Path(settings.DATA_ROOT) / "images" / f"{image}.tar.zst"


def all_blobs() -> Path:
    """The folder of the folders of `blobs`."""
    return Path(settings.DATA_ROOT) / "images" / "blobs"


def blobs(source: str) -> Path:
    """Where the pieces of container images from one name in one registry lie, for all machines."""
    return all_blobs() / hashlib.sha256(source.encode()).hexdigest()[:32]


def blob(folder: Path, digest: str) -> Path:
    """A piece of a container image as its registry gave it, in a folder of `blobs`."""
    return folder / digest.removeprefix("sha256:")


def local() -> Path:
    """This machine's folder for boxes and unpacked layers."""
    return Path(env.BOX_ROOT or Path(settings.DATA_ROOT) / "boxes") / settings.NODE


def layer(sha256: str) -> Path:
    """An unpacked layer on this machine."""
    return local() / "layers" / sha256


def box(job: int) -> Path:
    """A job's box on this machine: `upper` and `work`, or a `venv` where there are no layers."""
    return local() / "jobs" / str(job)


def open_folder(folder: Path) -> Path:
    """Make a folder that jobs of all people may pass through; umasks differ."""
    missing = [folder, *folder.parents]
    for each in reversed(missing[: next(number for number, path in enumerate(missing) if path.exists())]):
        each.mkdir(exist_ok=True)
        each.chmod(0o711)
    return folder


def make_closed(folder: Path) -> None:
    """Create a folder of image contents that only the platform may enter: some images are private."""
    folder.mkdir(parents=True, exist_ok=True)
    top = packed(0).parent
    if folder.is_relative_to(top) and stat.S_IMODE(top.stat().st_mode) != 0o700:
        top.chmod(0o700)


def closed_file(path: Path) -> BinaryIO:
    """Open a file for writing, emptied and private; a link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # it may have been there
    return os.fdopen(descriptor, "wb")


def takes_marks(folder: Path) -> bool:
    """Whether the file system keeps the extended attributes that an upper layer needs."""
    try:
        os.setxattr(folder, "user.aip", b"1")
        os.removexattr(folder, "user.aip")
    except OSError:
        return False
    return True


def remove(folder: Path) -> None:
    """Delete a box or a layer, closed folders included: the file system keeps one in every box.

    It goes into a folder of its own first, which holds what a killed process leaves of it.
    """
    with suppress(FileNotFoundError):
        trash = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=DELETED, dir=folder.parent))
        with suppress(FileNotFoundError):
            folder.rename(trash / folder.name)
        _remove(trash)


def finish_removals(parent: Path) -> None:
    """Go on with what a killed process had begun to delete."""
    for trash in parent.glob(f".*{DELETED}") if parent.is_dir() else ():
        with suppress(FileNotFoundError):
            _remove(trash)


def _remove(trash: Path) -> None:
    """Empty a folder of what is to be deleted, and delete it."""
    opened = os.open(trash, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name, _info in list(trees.entries(opened)):
            trees.remove(opened, name)
    finally:
        os.close(opened)
    with suppress(OSError):  # somebody who had a file in it open goes on writing; a sweep comes back
        trash.rmdir()
