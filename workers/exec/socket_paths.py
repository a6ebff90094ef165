"""Where the exec sockets of this machine's jobs lie: beside the platform's own sockets, on paths the kernel takes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from django.conf import settings

from workers.supervisor import exec_socket

_NAME = "{job}-{attempt}-{rank}"
_ROOM = len("/") + len(_NAME.format(job=10**10, attempt=10**5, rank=10**3))


def folder() -> Path:
    """Return the folder of all of them. Whoever asks must find the one that the supervisor was told."""
    return _short("exec")


def egress() -> Path:
    """Return the socket of the egress proxy. Its folder, and nothing else in it, is mounted for jobs."""
    return _short("egress") / "proxy"


def _short(name: str) -> Path:
    own = Path(settings.RUN_DIR) / name
    if len(os.fsencode(own)) + _ROOM <= exec_socket.LONGEST:
        return own
    digest = hashlib.sha256(os.fsencode(own)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"aip-{name}-{os.geteuid()}-{digest}"


def of(job_id: int, attempt: int, rank: int = 0) -> Path:
    """Return the socket of one rank of an attempt, made or not."""
    return folder() / _NAME.format(job=job_id, attempt=attempt, rank=rank)


def forget_earlier(job_id: int, attempt: int) -> None:
    """Remove what killed supervisors left of earlier attempts of a job."""
    for path in folder().glob(f"{job_id}-*"):
        number = path.name.split("-")[1]
        if number.isdigit() and int(number) < attempt:
            path.unlink(missing_ok=True)
