"""Whether a container engine has room for an image: it unpacks into a folder of its own, often on another disk."""

from __future__ import annotations

import shutil

from django.conf import settings

from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.supervisor.engine import Engine

UNPACKED = 3  # layers come packed, to about a third


class EngineFull(DomainError, code="engine_full", status=507):
    """An engine finds no room for an image on its own disk."""


def check(own: Engine, needed: int) -> None:
    """Refuse what the engine has no room for. Where its folder cannot be seen from here, it finds out by itself.

    Args:
        needed: bytes it will write; as much as uploads leave stays free besides.

    Raises:
        EngineFull: names the folder.
        Refused, Unanswered: the engine does not say where it is.
    """
    folder = own.folder()
    try:
        free = shutil.disk_usage(folder).free if folder else None
    except OSError:
        return
    if free is not None and free < needed + env.MIN_FREE_BYTES:
        facts = {"node": settings.NODE, "path": folder, "mib": (needed + env.MIN_FREE_BYTES) / (1 << 20)}
        raise EngineFull(wording.message("image.engine_full", **facts))
