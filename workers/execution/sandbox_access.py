"""What a ticket says of the roads into and out of a job: its exec server, its network."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from aiplatform import env
from workers.core import kinds
from workers.core.kinds import Launch
from workers.core.models import Attempt
from workers.execution import job_users
from workers.execution.exec import allowed_hosts, inside_programs, socket_paths
from workers.execution.exec import peers as exec_peers
from workers.supervisor import exec_socket, sandbox

log = logging.getLogger(__name__)


def fields(attempt: Attempt, rank: int, level: int, launch: Launch) -> dict[str, Any]:
    """The ticket's fields."""
    if not has_server(attempt):
        return {}
    socket_paths.folder().parent.mkdir(parents=True, exist_ok=True)
    socket_paths.forget_earlier(attempt.job_id, attempt.number)
    way_in = {"exec_socket": str(socket_paths.for_rank(attempt.job_id, attempt.number, rank))}
    if not is_alone(attempt, level, launch):
        return way_in
    return way_in | {"own_network": True, "egress_socket": str(socket_paths.egress()) if _has_egress() else ""}


def has_server(attempt: Attempt) -> bool:
    """Whether the job's kind runs an exec server with its command. A container may lack Python."""
    return kinds.has_exec_server(attempt.job.kind)


def is_alone(attempt: Attempt, level: int, launch: Launch) -> bool:
    """Whether the job has a network of its own. That takes tier 2 or more, and a job that lives on one machine."""
    return launch.own_network and attempt.job.nodes == 1 and level >= sandbox.BUBBLEWRAP and has_server(attempt)


def has_peers(attempt: Attempt, level: int) -> bool:
    """Whether a rank may start programs in the others of its job. Images of tier 4 may lack what that takes."""
    return attempt.job.nodes > 1 and level < sandbox.CONTAINER and has_server(attempt)


def peers(attempt: Attempt, rank: int, level: int) -> list[Path]:
    """The folder by which a rank reaches the others, made for it; none where it does not.

    Below tier 2 a job gets there on the machine's own paths, past the platform's own folder, which is closed to it.
    """
    if not has_peers(attempt, level):
        return []
    uid = job_users.uid_of(attempt.job.owner_id)
    on_own_paths = bool(uid) and level < sandbox.BUBBLEWRAP
    is_open = on_own_paths and job_users.closed_to_jobs([socket_paths.peers()], uid) is not None
    folder = exec_peers.make((attempt.job_id, attempt.number, rank), uid, is_open=is_open)
    closed = job_users.closed_to_jobs([folder], uid) if on_own_paths else None
    if closed:  # the folder of temporary files
        log.warning("job=%s reaches no other rank by itself, its user cannot enter %s", attempt.job_id, closed)
    return [] if closed else [folder]


def readable(attempt: Attempt, level: int, launch: Launch) -> list[Path]:
    """What the exec server has to read inside."""
    if not has_server(attempt):
        return []
    if not (is_alone(attempt, level, launch) and _has_egress()):
        return [Path(exec_socket.INSIDE)]
    folder = socket_paths.egress_folder()
    inside_programs.write_program(folder, sandbox.CONNECT, "connect.py")
    return [Path(exec_socket.INSIDE), folder]


def programs(attempt: Attempt, level: int, launch: Launch, peers: list[Path]) -> list[str]:
    """Folders with programs of the platform's own, for the beginning of PATH.

    Args:
        peers: as `peers` returns them.
    """
    goes_out = is_alone(attempt, level, launch) and _has_egress()
    return [*map(str, peers), *([str(socket_paths.egress().parent)] if goes_out else [])]


def environment(attempt: Attempt, level: int, launch: Launch) -> dict[str, str]:
    """Variables that point programs to the egress proxy, under the names that they read."""
    if not (is_alone(attempt, level, launch) and _has_egress()):
        return {}
    proxy, here = f"http://127.0.0.1:{exec_socket.PROXY_PORT}", "localhost,127.0.0.1,::1"
    variables = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": here}
    return variables | {name.lower(): value for name, value in variables.items()} | {"PIP_PROXY": proxy}


def _has_egress() -> bool:
    return env.EGRESS_ALLOWED != [allowed_hosts.NOBODY]
