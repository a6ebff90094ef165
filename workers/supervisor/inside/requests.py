"""Requests to the exec server and its responses.

A request is one line of JSON, answered by one line of JSON: {"ok": true, …}, or {"error": "…"} and the end. Bytes or
frames follow, see `relay` and `sessions`.

| request | follows |
|---|---|
| {"act": "port", "port": 8888} | the bytes of a connection to that port of the job's loopback |
| {"act": "unix", "path": "/…"} | the bytes of a connection to that socket |
| {"act": "session", "command": text or null, "pty": {"term", "rows", "columns"} or null, "env": {}} | frames |
| {"act": "sftp", "env": {}} | frames |
| {"act": "listen", "port": 0} | a line of JSON for each connection that arrives, see `listening` |
| {"act": "accept", "key": …, "id": …} | the bytes of such a connection |

The client runs outside the sandbox and may run on another node: file descriptors are never passed.
"""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    Request = dict[str, Any]

MAX_REQUEST_BYTES = 65536


class Job:
    """The job that an exec server serves.

    Args:
        top: the process that is the ancestor of all processes of the job; 0 if every listening socket in the
            sandbox belongs to the job.
        env: the environment of its command.
    """

    def __init__(self, top: int, env: "dict[str, str]") -> None:
        self.top, self.env = top, env


def answer(connection: "socket.socket", message: "dict[str, Any]") -> None:
    """Send one line of JSON.

    Raises:
        OSError: the client closed the connection.
    """
    connection.sendall(json.dumps(message).encode() + b"\n")
