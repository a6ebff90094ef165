"""Keep VS Code running in an environment; run by the job itself, as its own user. Standard library only.

    python3 -I - PROGRAM SOCKET BASE FOLDER LOG < serve_vscode.py

Prints one word when it is known how it went: `ready`, `failed` or `slow`. Whoever runs it while VS Code answers
changes nothing; two at once start one. What watches over VS Code starts it again when it dies, and gives up where it
never stays.
"""

import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

TIMEOUT_S = 20.0
LOOK_S = 0.1
QUICK_S = 10.0  # one that ended sooner did not stay
MAX_QUICK = 3
MAX_LOG_BYTES = 1 << 20


def main() -> None:
    program, socket_path, base, folder, log = sys.argv[1:]
    sys.stdout.write(start(options(program, socket_path, base, folder), socket_path, base, Path(log)) + "\n")


def start(argv: "list[str]", socket_path: str, base: str, log: Path) -> str:
    """Start VS Code and return the outcome."""
    if answers(socket_path, base):
        return "ready"
    deadline = time.monotonic() + TIMEOUT_S
    watcher = watch(argv, socket_path, log)
    while time.monotonic() < deadline:
        if answers(socket_path, base):
            return "ready"
        if watcher and os.waitpid(watcher, os.WNOHANG)[0]:
            return "failed"
        time.sleep(LOOK_S)
    return "slow"


def options(program: str, socket_path: str, base: str, folder: str) -> "list[str]":
    """Return the command line: no password, as only the platform's own route leads to the socket."""
    if Path(program).name == "code-server":
        flags = ["--auth", "none", "--socket", socket_path, "--socket-mode", "600"]
        return [program, *flags, "--disable-telemetry", "--disable-update-check", folder]
    flags = ["--socket-path", socket_path, "--server-base-path", base, "--without-connection-token"]
    return [program, *flags, "--accept-server-license-terms", "--telemetry-level", "off", "--default-folder", folder]


def answers(socket_path: str, base: str) -> bool:
    """Return whether a server on the socket speaks HTTP. Health checks do not count as use."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(2)
        try:
            link.connect(socket_path)
            link.sendall(f"GET {base}healthz HTTP/1.1\r\nHost: vscode\r\nConnection: close\r\n\r\n".encode())
            status = link.recv(12)
        except OSError:
            return False
    return status.startswith(b"HTTP/1.") and status[9:10] in (b"2", b"3", b"4")


def watch(argv: "list[str]", socket_path: str, log: Path) -> int:
    """Start a process that supervises VS Code; return its pid, or 0 if another one already does."""
    lock = os.open(f"{socket_path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return 0
    pid = os.fork()
    if pid:
        os.close(lock)
        return pid
    try:
        os.setsid()
        written = opened(log)
        for fd, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
            os.dup2(os.open(os.devnull, flags), fd)
        supervise(argv, socket_path, written)
    finally:
        os._exit(1)


def opened(path: Path) -> int:
    """Open the log, emptied where it grew long; nowhere where it cannot be written."""
    try:
        grown = path.exists() and path.stat().st_size > MAX_LOG_BYTES
        how = os.O_TRUNC if grown else os.O_APPEND
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | how, 0o644)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def supervise(argv: "list[str]", socket_path: str, log: int) -> None:
    """Restart the program whenever it ends; return if it does not stay up."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("VSCODE_")}
    quick = 0
    while quick < MAX_QUICK:
        begun = time.monotonic()
        Path(socket_path).unlink(missing_ok=True)
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, check=False)  # noqa: S603 - what the platform named
            code = done.returncode
        except OSError as exc:
            code = exc.errno or 1
        os.write(log, f"{argv[0]} ended with {code}\n".encode())
        quick = quick + 1 if time.monotonic() - begun < QUICK_S else 0
        time.sleep(LOOK_S * 2**quick)


if __name__ == "__main__":
    main()
