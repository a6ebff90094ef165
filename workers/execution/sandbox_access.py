"""What a ticket says of the roads into and out of a job: its exec server, its network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workers import kinds
from workers.exec import socket_paths
from workers.kinds import Launch
from workers.models import Attempt
from workers.supervisor import exec_socket, sandbox


def fields(attempt: Attempt, rank: int, level: int, launch: Launch) -> dict[str, Any]:
    """The ticket's fields. A network of its own takes tier 2 or 3, and a job that lives on one machine."""
    if not has_server(attempt, level):
        return {}
    socket_paths.folder().parent.mkdir(parents=True, exist_ok=True)
    socket_paths.forget_earlier(attempt.job_id, attempt.number)
    alone = launch.own_network and attempt.job.nodes == 1 and level >= sandbox.BUBBLEWRAP
    return {"exec_socket": str(socket_paths.of(attempt.job_id, attempt.number, rank)), "own_network": alone}


def has_server(attempt: Attempt, level: int) -> bool:
    """Whether an exec server runs beside the job's command: its kind wants one, and no container is around it."""
    return level < sandbox.CONTAINER and kinds.has_exec_server(attempt.job.kind)


def readable(attempt: Attempt, level: int) -> list[Path]:
    """What the exec server has to read inside."""
    return [Path(exec_socket.INSIDE)] if has_server(attempt, level) else []
