"""Where images lie: engines and packed layers for all machines, boxes and unpacked layers on a machine's own disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

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


def takes_marks(folder: Path) -> bool:
    """Whether the file system keeps the extended attributes that an upper layer needs."""
    try:
        os.setxattr(folder, "user.aip", b"1")
        os.removexattr(folder, "user.aip")
    except OSError:
        return False
    return True


def remove(folder: Path) -> None:
    """Delete a box or a layer, closed folders included: the file system keeps one in every box."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}{DELETED}")
    with suppress(FileNotFoundError):
        folder.rename(doomed)
        _remove(doomed)


def finish_removals(parent: Path) -> None:
    """Go on with what a killed process had begun to delete."""
    for doomed in parent.glob(f".*{DELETED}") if parent.is_dir() else ():
        _remove(doomed)


def _remove(doomed: Path) -> None:
    opened = os.open(doomed.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        trees.remove(opened, os.fsencode(doomed.name))
    finally:
        os.close(opened)
