"""Wake-up of a job's exec server: its interpreter starts when the first client connects, which for most jobs is never.

Until then a shell waits in the sandbox beside the command, in a process of its own that only reads its input.
The supervisor keeps the listening socket. At the first connection it writes a line, hands the socket over and closes
its own copy; the shell then becomes the server. Nothing enters the sandbox from outside: the server has the
namespaces, the user, the filter of system calls, the limits and the environment that the shell was started with.
"""

import os
import re
import socket
import sys

from workers.supervisor import exec_socket, sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.ticket import Ticket

#: $1 Python, $2 the server, $3 its network, then the command. The shell becomes the command, which has no child that
#: it does not know: the process that waits is forked twice, and has its name before the command begins.
SCRIPT = f"""\
(echo {exec_socket.NAME} > /proc/self/comm
(trap '' HUP INT QUIT ALRM TERM USR1 USR2
read -r line && exec "$1" -I -S "$2" --socket-on-stdin "$3" $$ $PPID) <&{sandbox.EXEC_INPUT} {sandbox.EXEC_INPUT}<&- &
) > /dev/null 2> /dev/null
shift 3
command -v "$1" > /dev/null || {{ echo "[could not start '$1': No such file or directory]" >&2; exit 127; }}
exec "$@" {sandbox.EXEC_INPUT}<&-
"""
_LINE = b"\n"
#: Variables that a shell changes, takes for its own or does not pass on. Where sh is bash, it adds SHLVL to the others.
_OF_SHELLS = re.compile(
    r"_|BASH.*|SHELLOPTS|SHLVL|ENV|IFS|OPTIND|OPTARG|OPTERR|PPID|UID|EUID|GROUPS|RANDOM|SRANDOM|SECONDS|LINENO|EPOCH.*"
    r"|PS4|PWD|OLDPWD|HIST.*|DIRSTACK|FUNCNAME|FUNCNEST|PIPESTATUS|POSIXLY_CORRECT|COMP_.*|TMOUT|(?!\w+\Z).*|\d.*",
    re.ASCII | re.DOTALL,
)


def is_possible(ticket: "Ticket") -> bool:
    """Whether the server can start late: a shell that passes on the job's environment unchanged precedes the command.

    Below tier 2 the waiting process could not be told from what the job leaves behind.
    """
    return sandbox.BUBBLEWRAP <= ticket.tier < sandbox.CONTAINER and not any(map(_OF_SHELLS.fullmatch, ticket.env))


class ExecWakeup:
    """The supervisor's side: the listening socket, and the input of the process that waits."""

    def __init__(self, ticket: "Ticket", listener: socket.socket) -> None:
        self._listener, self._network = listener, exec_socket.network(ticket)
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def prefix(self) -> list[str]:
        """The command prefix, in its sandbox."""
        return ["/bin/sh", "-c", SCRIPT, "sh", sys.executable, exec_socket.SERVER, self._network]

    def hand_on(self) -> None:
        """In the process that becomes the command: have the input of the one that waits where it expects it.

        Not as standard input, which bubblewrap itself keeps open: the death of a reader would go unnoticed.
        """
        os.dup2(self._theirs.fileno(), sandbox.EXEC_INPUT)

    def begun(self) -> None:
        """The command runs: keep what the supervisor needs. The proxy of a network of its own serves from the start."""
        self._theirs.close()
        if self._network.partition(":")[2]:
            self.wake()

    def fileno(self) -> int:
        """What becomes readable when a client connects; -1 once the server was woken."""
        return self._listener.fileno()

    def wake(self) -> None:
        """Start the server. A killed one answers no request, nor does one that is killed later."""
        try:
            self._ours.sendall(_LINE)
            socket.send_fds(self._ours, [b"."], [self._listener.fileno()])
        except OSError:  # its process was killed
            pass
        self.close()

    def close(self) -> None:
        for opened in (self._ours, self._theirs, self._listener):
            opened.close()
