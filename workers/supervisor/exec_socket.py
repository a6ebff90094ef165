"""Exec socket: where a job's exec server is reached from outside its sandbox.

It is made before the sandbox, in a folder of the supervisor's own that is never mounted inside, and handed in open:
a job can neither replace it nor reach that of another job.
"""

import os
import socket
import stat
import sys

from workers.supervisor import log_lines, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.ticket import Ticket

INSIDE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "inside")
SERVER = os.path.join(INSIDE, "exec_server.py")
NAME = "aip-exec"  # as the server calls itself
PROXY_PORT = 3128  # where a job on a network of its own finds the way out
MAX_PATH_BYTES = 107  # bytes of a socket's path, by the kernel
_WAITING = 128  # connections that nobody has taken yet


def listen(path: str, log: str) -> socket.socket | None:
    """Make the socket, and its folder. None without a path, and where it cannot be: the log says why, the job runs.

    Args:
        log: the file that the job's output goes to.
    """
    if not path:
        return None
    listener = socket.socket(socket.AF_UNIX)
    try:
        _bind(listener, path)
        listener.listen(_WAITING)
    except OSError as exc:
        listener.close()
        _note(log, log_lines.line(log_lines.ENVIRONMENT, "not_reachable", why=exc))
        return None
    return listener


def _bind(listener: socket.socket, path: str) -> None:
    """Bind the socket.

    Raises:
        OSError: it cannot be.
    """
    for last in (False, False, True):
        own_folder(os.path.dirname(path))
        remove(path)
        try:
            listener.bind(path)
            return
        except FileNotFoundError:  # another job, the last one there, took the folder away as it ended
            if last:
                raise


def _note(log: str, line: str) -> None:
    try:
        with open(log, "a") as file:
            file.write(line + "\n")
    except OSError:
        return


def own_folder(path: str, mode: int = 0o700) -> None:
    """Make a folder of our own, in one where others may have put something of that name before.

    Args:
        mode: what it allows at most.

    Raises:
        OSError: it is not ours.
    """
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not is_own(path, mode):
            raise PermissionError(f"{path} is not a folder of this user alone. Remove it") from None


def is_own(path: str, mode: int = 0o700) -> bool:
    """Whether this is a folder of ours that allows no more than `mode`; a link is none."""
    status = os.lstat(path)
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return ours and not stat.S_IMODE(status.st_mode) & 0o777 & ~mode


def remove(path: str) -> None:
    """Delete the socket, if there is one."""
    try:
        os.unlink(path)
    except OSError:
        return


def _remove_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:  # others are in it
        return


def server(ticket: "Ticket", listener: socket.socket) -> list[str]:
    """Return the command prefix inside the sandbox: it forks the server and becomes the command."""
    return [sys.executable, "-I", "-S", SERVER, str(listener.fileno()), network(ticket)]


def network(ticket: "Ticket") -> str:
    """Return the server's argument that describes the job's network."""
    return f"own:{ticket.egress_socket}" if ticket.own_network else "shared"


def end(path: str) -> list[int]:
    """Take the socket away, and its folder after the last; return what is left of server and bubblewrap."""
    if path:
        remove(path)
        _remove_folder(os.path.dirname(path))
    return [pid for pid in processes.descendants(os.getpid()) if processes.name(pid) in (NAME, "bwrap")]
