"""Web server process: granian inside a role of `up`, on a listening socket that all web processes share.

`up` binds the socket once and hands it to every web process, so connections wait in its queue while a process is
replaced, and none is refused. Why granian and not uvicorn:
docs/decisions/0031-one-preloaded-parent-forks-every-role.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import stat
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from aiplatform import env

MAX_WORKERS = 4
MAX_CONNECTIONS = 4096
BACKLOG = 2048
DRAIN_S = 0.3
"""How long an ending process, which accepts no more, waits for requests on its connections."""
GRACE_S = 30.0
"""How long an ending process answers the requests it has started."""
#: Memory that one thread freed serves the others: each heap of its own would keep what it once needed.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
LISTENER_VARIABLE = "AIP_LISTENER_FD"
APPLICATION = "aiplatform.asgi:application"


def workers() -> int:
    """How many web processes serve: as set, else one per core this process may use, at most four."""
    return env.WEB_WORKERS or max(1, min(len(os.sched_getaffinity(0)), MAX_WORKERS))


def connections() -> int:
    """How many connections one process holds at once; further ones wait. Each is an open file."""
    files, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(128, min(MAX_CONNECTIONS, files // 2))


def listen(host: str, port: int) -> socket.socket:
    """Bind the socket that web processes accept from.

    Raises:
        OSError: the port is taken, or the address is not one of this host.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def command(host: str, port: int, application: str = APPLICATION) -> list[str]:
    """Return the command of one web process; where it inherits no listening socket it binds host and port itself."""
    return [sys.executable, "-m", "aiplatform.cli.web", "--host", host, "--port", str(port), application]


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m aiplatform.cli.web", description=__doc__)
    parser.add_argument("--host", default=env.HOST)
    parser.add_argument("--port", type=int, default=env.PORT)
    parser.add_argument("--header-timeout", type=float, default=30.0, metavar="SECONDS", help="for the request head")
    parser.add_argument("application", nargs="?", default=APPLICATION, help="module:attribute")
    options = parser.parse_args(argv)
    inherited = os.environ.pop(LISTENER_VARIABLE, "")
    listener = socket.socket(fileno=int(inherited)) if inherited else listen(options.host, options.port)
    listener.set_inheritable(False)
    module, _colon, attribute = options.application.partition(":")
    application = getattr(import_module(module), attribute)
    import uvloop

    uvloop.run(serve(application, listener, header_timeout_s=options.header_timeout))
    return 0


async def serve(application: Any, listener: socket.socket, *, header_timeout_s: float = 30.0) -> None:
    """Serve an ASGI application on a listening socket until SIGTERM or SIGINT.

    Args:
        header_timeout_s: a connection that sends no complete request head for so long is closed. Granian enforces it
            only while HTTP/2 is off.
    """
    from granian._granian import SocketHolder
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server.embed import Server

    class SharedSocketServer(Server):
        def _init_shared_socket(self) -> None:
            holder: Any = SocketHolder  # its stub leaves out the constructor, by which granian sends it to processes
            self._ssp, self._shd = None, holder(listener.fileno(), False, BACKLOG)

    server: Any = SharedSocketServer(
        application,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(header_timeout_s * 1000)),
        websockets=True,
        backpressure=connections(),
        log_level=LogLevels.error,
        log_access=False,
    )
    logging.getLogger("_granian").setLevel(logging.ERROR)  # it warns of the embedded server at each start
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stop_accepting(listener)
        loop.call_later(DRAIN_S, server.stop)
        loop.call_later(DRAIN_S + GRACE_S, os._exit, 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await server.serve()


def stop_accepting(listener: socket.socket) -> None:
    """Leave new connections to the other web processes, which share the listening socket.

    Granian closes a connection that has sent no request yet when it stops, so it must accept none any more before
    that. It has no such step: its descriptors of the socket are replaced by one without connections.
    """
    shared = os.fstat(listener.fileno()).st_ino
    unused = socket.create_server(("127.0.0.1", 0))
    unused.setblocking(False)
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            status = entry.stat()
            if stat.S_ISSOCK(status.st_mode) and status.st_ino == shared:
                os.dup2(unused.fileno(), int(entry.name), inheritable=False)
    unused.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
