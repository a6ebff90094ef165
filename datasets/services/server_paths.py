"""Data in place on the server: only below folders the operator allowed, read and never changed.

People of the platform have no account of their own on the server, and a name that equals one proves nothing.
So a person gets what everybody with an account there may read; who sees everything gets what the platform may read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib.errors import DomainError


class PathRefused(DomainError, code="path_refused", status=403, field="server_path"): ...


class PathMissing(DomainError, code="path_missing", status=400, field="server_path"): ...


def roots() -> list[Path]:
    """Folders whose data may be registered, links resolved."""
    return [Path(os.path.realpath(Path(root).expanduser())) for root in env.SERVER_PATHS if root]


def require(path: str, *, by: User) -> Path:
    """The real folder behind `path`.

    Raises:
        PathRefused: outside the allowed roots, also by a link (operators see the roots); or not readable for all.
        PathMissing: not an absolute path ending with "/", or no such folder.
    """
    if not path.startswith("/") or not path.endswith("/") or "\0" in path:
        raise PathMissing(_('Enter the absolute path of a folder, ending with "/".'))
    real = Path(os.path.realpath(path))
    if ".." in path.split("/") or "//" in path or not any(real.is_relative_to(root) for root in roots()):
        allowed = (
            _("Allowed: %(roots)s.") % {"roots": ", ".join(map(str, roots())) or "–"} if by.sees_everything else ""
        )
        raise PathRefused(
            _("This folder is outside of the folders that can be registered. Ask an operator.") + " " + allowed
        )
    if not real.is_dir():
        raise PathMissing(_("This folder does not exist on the server."))
    if not os.access(real, os.R_OK | os.X_OK):
        raise PathMissing(_("The platform cannot read this folder."))
    if not by.sees_everything and not all(map(_open_to_all, _below_root(real))):
        raise PathRefused(_("Not all users of the server can read this folder. Ask an operator to register it."))
    return real


def require_files(root: Path, names: Iterable[str], *, by: User) -> None:
    """Refuse files of `names` below `root` that not everybody on the server may read; operators may all.

    Raises:
        PathRefused: with the first file that belongs to another user.
    """
    if by.sees_everything:
        return
    folders: dict[Path, bool] = {root: True}

    def reached(folder: Path) -> bool:
        if folder not in folders:
            folders[folder] = reached(folder.parent) and _open_to_all(folder)
        return folders[folder]

    for name in names:
        file = root / name
        if not reached(file.parent) or not _open_to_all(file):
            raise PathRefused(
                _("Not all users of the server can read %(name)s. Ask an operator to register it.") % {"name": name}
            )


def _below_root(real: Path) -> list[Path]:
    """The folder and those above it, up to the allowed root, which the operator answers for."""
    allowed = max((root for root in roots() if real.is_relative_to(root)), key=lambda root: len(root.parts))
    return [folder for folder in (real, *real.parents) if folder != allowed and folder.is_relative_to(allowed)]


def _open_to_all(path: Path) -> bool:
    status = path.lstat()
    wanted = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else stat.S_IROTH
    return status.st_mode & wanted == wanted
