"""What a ticket says of the roads into and out of a job: its exec server, its network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiplatform import env
from workers import kinds
from workers.exec import egress, socket_paths
from workers.kinds import Launch
from workers.models import Attempt
from workers.supervisor import exec_socket, sandbox


def fields(attempt: Attempt, rank: int, level: int, launch: Launch) -> dict[str, Any]:
    """The ticket's fields."""
    if not has_server(attempt, level):
        return {}
    socket_paths.folder().parent.mkdir(parents=True, exist_ok=True)
    socket_paths.forget_earlier(attempt.job_id, attempt.number)
    way_in = {"exec_socket": str(socket_paths.of(attempt.job_id, attempt.number, rank))}
    if not is_alone(attempt, level, launch):
        return way_in
    return way_in | {"own_network": True, "egress_socket": str(socket_paths.egress()) if _has_egress() else ""}


def has_server(attempt: Attempt, level: int) -> bool:
    """Whether an exec server runs beside the job's command: its kind wants one, and no container is around it."""
    return level < sandbox.CONTAINER and kinds.has_exec_server(attempt.job.kind)


def is_alone(attempt: Attempt, level: int, launch: Launch) -> bool:
    """Whether the job has a network of its own. That takes tier 2 or 3, and a job that lives on one machine."""
    return launch.own_network and attempt.job.nodes == 1 and level >= sandbox.BUBBLEWRAP and has_server(attempt, level)


def readable(attempt: Attempt, level: int, launch: Launch) -> list[Path]:
    """What the exec server has to read inside."""
    if not has_server(attempt, level):
        return []
    if not (is_alone(attempt, level, launch) and _has_egress()):
        return [Path(exec_socket.INSIDE)]
    folder = socket_paths.egress().parent
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(exec_socket.INSIDE), folder]


def environment(attempt: Attempt, level: int, launch: Launch) -> dict[str, str]:
    """What programs are told of the way out, in the names that they look for."""
    if not (is_alone(attempt, level, launch) and _has_egress()):
        return {}
    proxy, here = f"http://127.0.0.1:{exec_socket.PROXY_PORT}", "localhost,127.0.0.1,::1"
    told = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": here}
    return told | {name.lower(): value for name, value in told.items()} | {"PIP_PROXY": proxy}


def _has_egress() -> bool:
    return env.EGRESS_ALLOWED != [egress.NOBODY]
