"""Handover: how the open socket of an exec server gets into a container, which no engine takes along.

Beside the exec socket the supervisor listens on a second one, which alone is mounted. Whoever connects there first is
given the exec socket, open, and the second one is gone: inside, nothing can be unlinked, replaced or taken twice. The
first is our own start of the server, which connects before the command begins. An image without a Python that can be
the server leaves nobody who asks; the job then has no way in, and `WAYS` says so for those who would use one.
"""

import contextlib
import os
import socket
import time

from workers.supervisor import exec_socket, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.ticket import Ticket

WAYS = "ways.json"  # in the run directory: {"why": …} where a running job has no way in
NO_PYTHON = "no_python"
TIMED_OUT = "late"  # nobody came in time
SUFFIX = ".in"
TIMEOUT_S = 30.0  # a machine under load takes its time to begin a program
OLDEST = (3, 9)  # of the Pythons that can be the server
_TOLD = (
    "[no terminal, port or file of this job can be opened from outside: its image has no python3 of version "
    f"{OLDEST[0]}.{OLDEST[1]} or later]"
)
_HEAD_BYTES = 1 << 20  # of the log, where that is told
#: Starts the server before the command where the image has a Python for it, else the command alone.
ENTRY = (
    'python=$1 server=$2 place=$3 network=$4; shift 4; '
    f'if "$python" -I -S -c "import sys; sys.exit(sys.version_info < {OLDEST})" 2>/dev/null; '
    'then exec "$python" -I -S "$server" "$place" "$network" "$@"; fi; '
    f'echo "{_TOLD}"; exec "$@"'
)  # fmt: skip


def place(ticket: "Ticket") -> str:
    """Where the container finds who hands the exec socket over; "" for a job without one."""
    return ticket.exec_socket + SUFFIX if ticket.exec_socket else ""


class Handover:
    """Waits for the exec server of one container, and gives it its socket."""

    def __init__(self, ticket: "Ticket", run: str, log: str) -> None:
        self.run, self.place = run, place(ticket)
        self._log, self._waited_s = log, 0.0
        self._last: float | None = None  # when it was last looked; None after a pause
        self._listener = exec_socket.listen(ticket.exec_socket, log)
        self._path = ticket.exec_socket
        self._asked = exec_socket.listen(self.place, log) if self._listener else None
        if self._asked:
            os.chmod(self.place, 0o666)  # the job's user connects; its folder is closed to all others
            self._asked.setblocking(False)
        else:
            self.close()

    @property
    def waits(self) -> bool:
        """Whether no client came so far."""
        return self._asked is not None

    def waking(self) -> list[int]:
        """Descriptors that become readable when a client comes."""
        return [self._asked.fileno()] if self._asked else []

    def step(self, now: float, *, paused: bool = False) -> None:
        """Give the socket to the client that came; after `PATIENCE_S` none does. A pause does not count.

        Args:
            now: monotonic seconds.
        """
        if self._asked is None or self._listener is None:
            return
        self._waited_s += 0.0 if paused or self._last is None else now - self._last
        self._last = None if paused else now
        try:
            client, _ = self._asked.accept()
        except OSError:
            if self._waited_s > TIMEOUT_S:
                self.give_up()
            return
        with client:
            try:
                client.setblocking(True)
                client.settimeout(1.0)
                socket.send_fds(client, [b"."], [self._listener.fileno()])
            except OSError:  # it died on the way
                self.give_up()
                return
        self.close()

    def give_up(self) -> None:
        """Refuse all clients: callers learn at once that there is no server, and why."""
        with contextlib.suppress(OSError):  # callers then hear that nobody answers
            records.write(os.path.join(self.run, WAYS), {"why": self._why(), "at": time.time()})
        self.close()
        exec_socket.remove(self._path)

    def _why(self) -> str:
        """Why no client came: the image has no Python, as the log then shows, or it took too long."""
        try:
            with open(self._log, "rb") as file:
                return NO_PYTHON if _TOLD.encode() in file.read(_HEAD_BYTES) else TIMED_OUT
        except OSError:
            return TIMED_OUT

    def close(self) -> None:
        """Close everything here: the other end of the exec socket belongs to the server."""
        for opened in (self._asked, self._listener):
            if opened:
                opened.close()
        self._asked = self._listener = None
        if self.place:
            exec_socket.remove(self.place)
