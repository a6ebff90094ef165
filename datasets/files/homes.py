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
    """Return the home of a user, created if it is missing; only the user and their jobs have access.

    Raises:
        FileExistsError, NotADirectoryError: something else than a folder has its name.
    """
    path = all_homes() / path_of(user).name
    path.mkdir(mode=0o700, exist_ok=True)
    uid = job_users.uid_of(user.pk)
    with trees.opened(path) as folder:
        status = os.fstat(folder)
        if status.st_mode & 0o7777 != 0o700:
            os.fchmod(folder, 0o700)
        if uid and status.st_uid != uid:
            trees.change_owner(folder, uid)
    return path


def all_homes() -> Path:
    """The folder of all homes: jobs pass through it to their person's without seeing whose others there are."""
    folder = Path(settings.DATA_ROOT) / HOMES
    folder.mkdir(parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o7777 != 0o711:
        folder.chmod(0o711)
    return folder
