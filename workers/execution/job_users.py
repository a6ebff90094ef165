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


class Unreadable(DomainError):
    code = "unreadable"


class ShutOut(DomainError):
    """A job whose user cannot get to files of its own on this machine."""

    code = "shut_out"


def uid_of(owner_id: int) -> int:
    """The user that jobs of a person run under; 0 is the platform's own, where it has no other to give files to."""
    return env.JOB_UIDS + owner_id if os.geteuid() == 0 and may_give(Path(settings.DATA_ROOT)) else 0


@cache
def may_give(folder: Path) -> bool:
    """Whether root may give files away here; network storage often takes root for nobody. Asked once per process."""
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
    """Groups that device files are kept for, where others may not open them; root's own group is for nobody."""
    found = set()
    for path in devices:
        with contextlib.suppress(OSError):
            about = Path(path).stat()
            if about.st_mode & 0o066 == 0o060:
                found.add(about.st_gid)
    return sorted(found - {0})


def refuse_unreadable(paths: Iterable[Path], uid: int) -> None:
    """Refuse what the user of a job may not read at its top: data that was registered where it lies.

    Raises:
        Unreadable: with what to do.
    """
    for path in paths if uid else ():
        about = path.stat()
        wanted = 0o005 if stat.S_ISDIR(about.st_mode) else 0o004
        if about.st_mode & wanted != wanted and about.st_uid != uid:
            raise Unreadable(wording.message("job.unreadable", path=str(path)))


def open_way(folder: Path) -> None:
    """Let the group of all jobs pass through a folder of root's that is closed to others."""
    about = folder.stat()
    if about.st_uid == 0 and about.st_gid == 0 and not about.st_mode & 0o001:
        os.chown(folder, -1, env.JOB_UIDS)
        folder.chmod((about.st_mode & 0o7700) | 0o010)


def closed_to_jobs(paths: Iterable[Path], uid: int = 0) -> Path | None:
    """The first folder on the way to one of these that a job below tier 2 cannot pass, None where it gets to all."""
    groups = {env.JOB_UIDS, uid or env.JOB_UIDS}
    folders = {folder for path in paths for folder in path.resolve().parents}
    for folder in sorted(folders):
        about = folder.stat()
        if not about.st_mode & 0o001 and not (about.st_gid in groups and about.st_mode & 0o010):
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
            about = os.stat(name, dir_fd=at, follow_symlinks=False)
            if about.st_uid == 0 and not about.st_mode & 0o004:
                os.chown(name, -1, uid, dir_fd=at, follow_symlinks=False)
