"""Data that already lies on the server: only below roots the operator allowed, read in place, never changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib.errors import DomainError


class PathRefused(DomainError):
    code: ClassVar[str] = "path_refused"
    status: ClassVar[int] = 403
    field: ClassVar[str] = "server_path"


class PathMissing(DomainError):
    code: ClassVar[str] = "path_missing"
    status: ClassVar[int] = 400
    field: ClassVar[str] = "server_path"


def roots() -> list[Path]:
    """Folders whose data may be registered, links resolved."""
    return [Path(os.path.realpath(Path(root).expanduser())) for root in env.SERVER_PATHS if root]


def require(path: str, *, by: User) -> Path:
    """The real folder behind `path`.

    Raises:
        PathRefused: outside the allowed roots, also by a link; operators are told the roots.
        PathMissing: not an absolute path ending with "/", or no such folder.
    """
    if not path.startswith("/") or not path.endswith("/") or "\0" in path:
        raise PathMissing(_('Give the absolute path of a folder, ending with "/".'))
    real = Path(os.path.realpath(path))
    if ".." in path.split("/") or "//" in path or not any(real.is_relative_to(root) for root in roots()):
        told = _("Allowed: %(roots)s.") % {"roots": ", ".join(map(str, roots())) or "–"} if by.sees_everything else ""
        raise PathRefused(_("This folder is outside of what may be registered. Ask an operator.") + " " + told)
    if not real.is_dir():
        raise PathMissing(_("There is no such folder on the server."))
    if not os.access(real, os.R_OK | os.X_OK):
        raise PathMissing(_("The platform may not read this folder."))
    return real
