"""JupyterLab of an environment: how it is started, and asked from outside through the job's exec server."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import Timer
from typing import Any

from training.environments import jupyter_access
from workers.core import scratch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.execution.exec import channels
from workers.execution.exec.channels import ChannelRefused, Way
from workers.supervisor import sandbox

SOCKET = "jupyter.sock"  # in TMPDIR
TIMEOUT_S = 5.0
MAX_BYTES = 1 << 20
#: Polling must not count as use: Jupyter notes the time of every other request.
UNNOTED = "?no_track_activity=1"


@dataclass(frozen=True)
class Server:
    """A Jupyter server: the route into the job, the path of its socket, the URL prefix, and the token."""

    channel_way: Way
    path: str
    base: str
    token: str


@dataclass(frozen=True)
class Answers:
    """Responses of the server, parsed but not validated: lists or objects as the job sends them."""

    kernels: Any
    terminals: Any


def options(job: Job, *, home: Path, folder: str) -> list[str]:
    """Options of jupyter-lab. The token comes by JUPYTER_TOKEN: a command line is seen by all."""
    return [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.base_url={jupyter_access.base_path(job)}",
        f"--ServerApp.root_dir={home}",
        f"--LabApp.default_url=/{jupyter_access.first_page(folder)}",
        "--ServerApp.allow_remote_access=True",
        "--ServerApp.quit_button=False",
        "--ServerApp.sock_mode=0600",
        # a login shell would lose the job's PATH
        "--ServerApp.terminado_settings={'shell_command': ['/bin/bash']}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]


def variables(home: Path, token: str) -> dict[str, str]:
    """Environment of jupyter-lab; TMPDIR is the job's own."""
    return {
        "HOME": str(home),
        "SHELL": "/bin/bash",
        "JUPYTER_TOKEN": token,
        "JUPYTER_PREFER_ENV_PATH": "1",  # a kernel of the same name in the home must not take its own one's place
    }


def socket_path(attempt: Attempt) -> str:
    """Where it listens, as the job sees it: in its TMPDIR."""
    tier = attempt.sandbox_tier or 0
    run = RunDir.for_attempt(attempt.job_id, attempt.number)
    tmp = Path("/tmp") if tier >= sandbox.BUBBLEWRAP else scratch.job_tmp(run, 0)  # noqa: S108 - the job's own
    return str(tmp / SOCKET)


def whom(job: Job, attempt: Attempt, token: str) -> Server:
    """Whom to ask about a running environment.

    Raises:
        ChannelRefused: nobody can be asked now.
    """
    return Server(channels.way_to(job), socket_path(attempt), jupyter_access.base_path(job), token)


def query_server(server: Server) -> Answers | None:
    """Query the kernels and terminals; None if the server does not respond. Does not use the database."""
    try:
        _get(server, "api")
        return Answers(_get(server, f"api/kernels{UNNOTED}"), _get(server, f"api/terminals{UNNOTED}"))
    except (ChannelRefused, OSError, HTTPException, ValueError, RecursionError):
        return None


def _get(server: Server, path: str) -> Any:
    channel = channels.connect(server.channel_way, {"act": "unix", "path": server.path}, patience_s=TIMEOUT_S)
    patience = Timer(TIMEOUT_S, _cut, [channel])  # a job that sends a byte now and then holds nobody up
    patience.start()
    connection = _Channel(channel)
    try:
        connection.request("GET", server.base + path, headers={"Authorization": f"token {server.token}"})
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise OSError(f"{path} was answered with {answer.status}")
        return json.loads(answer.read(MAX_BYTES))
    finally:
        patience.cancel()
        connection.close()


def _cut(channel: socket) -> None:
    with suppress(OSError):
        channel.shutdown(SHUT_RDWR)


class _Channel(HTTPConnection):
    """HTTP over a connected channel."""

    def __init__(self, channel: socket) -> None:
        super().__init__("job")
        channel.settimeout(TIMEOUT_S)
        self.sock = channel

    def connect(self) -> None:
        raise OSError("the channel was closed")
