"""Job user: the ordinary user a job runs under where the platform is root, and its way to what it needs."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.supervisor import sandbox

log = logging.getLogger(__name__)


class Unreadable(DomainError, code="unreadable"): ...


class ShutOut(DomainError, code="shut_out"):
    """A job whose user cannot get to files of its own on this machine."""


def uid_of(owner_id: int) -> int:
    """The user that jobs of a person run under; 0 is the platform's own, where it has no other to give files to."""
    return env.JOB_UIDS + owner_id if os.geteuid() == 0 and can_chown(Path(settings.DATA_ROOT)) else 0


@cache
def can_chown(folder: Path) -> bool:
    """Whether root may change the owner of files here; network storage often squashes root. Cached."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".give-") as probe:
        try:
            os.fchown(probe.fileno(), env.JOB_UIDS, env.JOB_UIDS)
        except OSError:
            return False
    return True


def who(
    uid: int, tier: int, needs: Iterable[Path], devices: Iterable[str] = (), *, own: Iterable[Path] = ()
) -> dict[str, Any]:
    """What a ticket says of the user, and of the groups that its device files are kept for.

    From tier 2 on the sandbox shows a job what it needs, wherever that lies. Below, the job has to get there on the
    machine's own paths: into the data folder by a group of all jobs, which may pass but not look round. Where another
    folder on the way is closed for it (a program in root's home), it stays root without any capability, and `doctor`
    says so.

    Args:
        own: what the job writes to beside its run directory.

    Raises:
        ShutOut: it would stay root, and some of that belongs to its user, so it could not write there.
    """
    if not uid:
        return {"uid": 0}
    groups = groups_of(devices)
    if tier >= sandbox.BUBBLEWRAP:
        return {"uid": uid, "groups": groups}
    open_way(Path(settings.DATA_ROOT))
    closed = closed_to_jobs(needs, uid)
    if closed:
        if any(path.exists() and path.stat().st_uid == uid for path in own):
            raise ShutOut(wording.message("job.shut_out", path=str(closed)))
        log.warning("jobs run as root without capabilities, their user cannot enter %s", closed)
        return {"uid": 0}
    return {"uid": uid, "groups": [env.JOB_UIDS, *groups]}


def groups_of(devices: Iterable[str]) -> list[int]:
    """Groups that device files are reserved for, where others may not open them; root's own group is left out."""
    groups = set()
    for path in devices:
        with contextlib.suppress(OSError):
            status = Path(path).stat()
            if status.st_mode & 0o066 == 0o060:
                groups.add(status.st_gid)
    return sorted(groups - {0})


def refuse_unreadable(paths: Iterable[Path], uid: int) -> None:
    """Refuse data, registered in place, whose top the user of a job may not read.

    Raises:
        Unreadable: with what to do.
    """
    for path in paths if uid else ():
        status = path.stat()
        wanted = 0o005 if stat.S_ISDIR(status.st_mode) else 0o004
        if status.st_mode & wanted != wanted and status.st_uid != uid:
            raise Unreadable(wording.message("job.unreadable", path=str(path)))


def open_way(folder: Path) -> None:
    """Let the group of all jobs pass through a folder of root's that is closed to others."""
    status = folder.stat()
    if status.st_uid == 0 and status.st_gid == 0 and not status.st_mode & 0o001:
        os.chown(folder, -1, env.JOB_UIDS)
        folder.chmod((status.st_mode & 0o7700) | 0o010)


def closed_to_jobs(paths: Iterable[Path], uid: int = 0) -> Path | None:
    """The first parent folder of these paths that a job below tier 2 cannot pass, None where it reaches all."""
    groups = {env.JOB_UIDS, uid or env.JOB_UIDS}
    folders = {folder for path in paths for folder in path.resolve().parents}
    for folder in sorted(folders):
        status = folder.stat()
        if not status.st_mode & 0o001 and not (status.st_gid in groups and status.st_mode & 0o010):
            return folder
    return None


def enclose(run: Path, uid: int) -> None:
    """Close a run directory to all but the platform, which owns the data folder, and the job's user."""
    if uid:
        os.chown(run, Path(settings.DATA_ROOT).stat().st_uid, uid)
    run.chmod(0o750)


def lend(folder: Path, uid: int) -> None:
    """Let the job's user read what an earlier attempt of the same job wrote when jobs still ran as root."""
    if not uid or not folder.is_dir():
        return
    for _path, folders, files, at in os.fwalk(folder):
        for name in (*folders, *files):
            status = os.stat(name, dir_fd=at, follow_symlinks=False)
            if status.st_uid == 0 and not status.st_mode & 0o004:
                os.chown(name, -1, uid, dir_fd=at, follow_symlinks=False)
