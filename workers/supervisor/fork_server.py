"""Fork server: `python -I -S …/workers/supervisor/fork_server.py DOOR`, a warm Python that becomes supervisors.

Starting Python and reading the supervisor's modules costs more than all that a short job needs of a supervisor. Each
process that starts jobs has one of these, made at its first start. It owns nothing, so it may be killed at any time,
and ends with the one whose it is. Requests are a run directory and a pipe for the answer, see `daemon.run`.
"""

import ctypes
import gc
import os
import socket
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE.rsplit("/", 2)[0])  # -I leaves nothing on the path but the stdlib

from workers.supervisor import cgroups, daemon, disk_limit, records, sandbox, seccomp  # noqa: E402, F401 - found by the line above, and warm


def main(argv: list[str]) -> int:
    """Fork a supervisor for each request that comes through the socket `argv[1]`, until the other end is closed."""
    door = socket.socket(fileno=int(argv[1]))
    door.set_inheritable(False)
    code = _code()
    _call_me([*_python(), os.path.join(HERE, "fork_server.py")])
    if seccomp.works():
        seccomp.program()
    sandbox.copies()
    gc.freeze()  # what is there now is shared with all supervisors: looking through it would copy it
    while True:
        request, pipes, _flags, _sender = socket.recv_fds(door, 8192, 1)
        if not request or _code() != code:  # nobody asks any more; or an upgrade: let the new code start it
            return 0
        child = os.fork()
        if child == 0:
            door.close()
            _start_supervisor(os.fsdecode(request), pipes[0])
        os.close(pipes[0])
        os.waitpid(child, 0)


def _start_supervisor(home: str, tell: int) -> None:
    """In a fresh child: leave the fork server, and be a supervisor like one that was started by itself."""
    try:
        if os.fork() == 0:
            os.set_inheritable(tell, False)
            _call_me([*_python(), os.path.join(HERE, "__main__.py"), home])
            daemon.run(home, tell)
    except BaseException:  # noqa: BLE001 - nothing may get out into the loop of the fork server
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _python() -> list[str]:
    return [sys.executable, "-I", "-S"]


def _code() -> "list[tuple[str, int, int]]":
    """Return a fingerprint that distinguishes the supervisor's files on disk from those that were read."""
    with os.scandir(HERE) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
    return sorted((name, status.st_ino, status.st_mtime_ns) for name, status in files)


def _call_me(argv: list[str]) -> None:
    """Show this command line for the calling process, cut where the one it was started with left no room for it."""
    fields = records.text("/proc/self/stat").rsplit(")", 1)[1].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start, arg_end
    if 0 < start < end:
        room = end - start
        ctypes.memmove(start, b"\0".join(map(os.fsencode, argv))[: room - 1].ljust(room, b"\0"), room)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
