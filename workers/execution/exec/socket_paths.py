"""Where the exec sockets of this machine's jobs lie: beside the platform's own sockets, on paths the kernel takes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import tempfile
import time
from pathlib import Path

from django.conf import settings

from aiplatform import env
from workers.supervisor import exec_socket, handover

PEERS_SOCKET = "socket"
YOUNG_S = 60.0  # one that was just bound may not listen yet
_NAME = "{job}-{attempt}-{rank}"
_ROOM = len("/") + len(_NAME.format(job=10**10, attempt=10**5, rank=10**3)) + len(handover.SUFFIX)


def folder() -> Path:
    """Return the folder of all sockets. Callers must use the path that the supervisor received."""
    return _short("exec")


def egress() -> Path:
    """Return the socket of the egress proxy. Its folder, and nothing else in it, is mounted for jobs."""
    return _short("egress") / "proxy"


def egress_folder() -> Path:
    """Make the folder of the egress proxy, which jobs read, and return it.

    Raises:
        OSError: somebody else made it.
    """
    path = egress().parent
    path.parent.mkdir(parents=True, exist_ok=True)
    exec_socket.own_folder(str(path), 0o755)
    path.chmod(0o755)
    return path


def mps() -> Path:
    """Return the folder of this machine's MPS daemons, which have a folder for each person there.

    Where the platform is root it lies below /run: daemons run under the users of jobs, who may not enter its folders.
    """
    if env.MPS_DIR:
        return Path(env.MPS_DIR)
    if os.geteuid() == 0:
        return Path("/run") / short_name("mps")
    return _short("mps", len("/pipe/nvidia-cuda-mps-control.pid"))


def peers() -> Path:
    """Return the folder of what ranks of jobs on several machines reach each other by: one folder for each rank here.

    A job sees its own rank's alone: whose socket is asked says who asks.
    """
    return _short("peers", len(f"/{PEERS_SOCKET}"))


def open_peers() -> Path:
    """Return the folder in place of `peers` where that one is closed to jobs on the machine's own paths."""
    return _in_tmp("peers")


def peers_of(job_id: int, attempt: int, rank: int, *, is_open: bool = False) -> Path:
    """Return the folder of one rank, made or not."""
    return (open_peers() if is_open else peers()) / _NAME.format(job=job_id, attempt=attempt, rank=rank)


def rank_of(name: str) -> tuple[int, int, int] | None:
    """Parse job, attempt and rank from a name of `for_rank` or `peers_of`; None for any other name."""
    parts = name.split("-")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


def _short(name: str, room: int = 0) -> Path:
    own = Path(settings.RUN_DIR) / name
    if len(os.fsencode(own)) + _ROOM + room <= exec_socket.MAX_PATH_BYTES:
        return own
    return _in_tmp(name)


def _in_tmp(name: str) -> Path:
    return Path(tempfile.gettempdir()) / short_name(name)


def short_name(name: str) -> str:
    """Return a name for a folder of this platform's among those of others."""
    digest = hashlib.sha256(os.fsencode(Path(settings.RUN_DIR) / name)).hexdigest()[:12]
    return f"aip-{name}-{os.geteuid()}-{digest}"


def for_rank(job_id: int, attempt: int, rank: int = 0) -> Path:
    """Return the socket of one rank of an attempt, whether it exists or not."""
    return folder() / _NAME.format(job=job_id, attempt=attempt, rank=rank)


def sweep() -> list[str]:
    """Remove sockets without a listener: killed supervisors left them. Returns their names."""
    removed, open_here = [], _open_here()
    for path in folder().iterdir() if folder().is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            status, is_open = path.lstat(), os.fsencode(path) in open_here
            young = status.st_mtime > time.time() - YOUNG_S
            if stat.S_ISSOCK(status.st_mode) and not is_open and not young and _is_deaf(path):
                path.unlink()
                removed.append(path.name)
    return removed


def _open_here() -> set[bytes]:
    """Paths of the sockets that are open in this network namespace; asking those would only wake their jobs."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/net/unix").read_bytes().splitlines()[1:]
        return {fields[7] for line in lines if len(fields := line.split(None, 7)) > 7}
    return set()


def _is_deaf(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
        except OSError:  # one that is busy listens
            return False
    return False


def forget_earlier(job_id: int, attempt: int) -> None:
    """Remove what killed supervisors left of earlier attempts of a job."""
    for path in folder().glob(f"{job_id}-*"):
        number = path.name.split("-")[1]
        if number.isdigit() and int(number) < attempt:
            path.unlink(missing_ok=True)
