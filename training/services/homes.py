"""Home folders: where a person's own files lie, the same folder in every environment of theirs."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from accounts.models import User
from aiplatform.lib import trees
from workers.execution import job_users

HOMES = "home"


def path_of(user: User) -> Path:
    """Where the home of a person is; a username like ".." must not lead out of it, nor "=" be a username."""
    name = user.username if not user.username.startswith(".") else f"={user.pk}"
    return Path(settings.DATA_ROOT) / HOMES / name


def home_of(user: User) -> Path:
    """The home of a person, made where it is not there yet: for them and their jobs alone.

    Raises:
        FileExistsError, NotADirectoryError: something else than a folder has its name.
    """
    path = path_of(user)
    _open_to_pass(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    uid = job_users.uid_of(user.pk)
    with trees.opened(path) as folder:
        about = os.fstat(folder)
        if about.st_mode & 0o7777 != 0o700:
            os.fchmod(folder, 0o700)
        if uid and about.st_uid != uid:
            trees.give(folder, uid)
    return path


def _open_to_pass(homes: Path) -> None:
    """Let jobs pass to their person's home without seeing whose others there are."""
    homes.mkdir(parents=True, exist_ok=True)
    if homes.stat().st_mode & 0o7777 != 0o711:
        homes.chmod(0o711)
