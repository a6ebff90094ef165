"""The web server: its command, and how many processes it has."""

from __future__ import annotations

import os
import resource
import sys

from aiplatform import env

MOST_WORKERS = 4
MOST_CONNECTIONS = 4096
KILL_TIMEOUT_S = 4
#: Memory that one thread freed serves the others: each heap of its own would keep what it once needed.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


def workers() -> int:
    """How many web processes serve: as set, else one per core this process may use, at most four."""
    return env.WEB_WORKERS or max(1, min(len(os.sched_getaffinity(0)), MOST_WORKERS))


def connections() -> int:
    """How many connections one process holds at once; further ones wait. Each is an open file."""
    files, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(128, min(MOST_CONNECTIONS, files // 2))


def command(host: str, port: int, count: int, application: str = "aiplatform.asgi:application") -> list[str]:
    """Return the command of a web server with `count` processes; one that dies is replaced, SIGHUP renews them."""
    return [
        sys.executable,
        *("-m", "granian", "--interface", "asgi", "--host", host, "--port", str(port)),
        *("--workers", str(count), "--respawn-failed-workers", "--workers-kill-timeout", str(KILL_TIMEOUT_S)),
        *("--no-access-log", "--log-level", "warning", "--ws"),
        *("--http", "1"),  # while either is awaited, a connection that says nothing is never closed
        *("--backpressure", str(connections())),
        application,
    ]
