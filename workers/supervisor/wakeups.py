"""What a supervisor wakes for: a file renamed into its run directory, a signal, a client of its job's exec server."""

import ctypes
import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from workers.supervisor.exec_wakeup import ExecWakeup

_IN_MOVED_TO = 0x80


class Wakeups:
    """Inotify's descriptor and the pipe of signals of this process; one per process.

    Args:
        folder: whose renamed files wake.
    """

    def __init__(self, folder: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        renamed = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if renamed >= 0:
            libc.inotify_add_watch(renamed, os.fsencode(folder), _IN_MOVED_TO)
        signalled, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self._own = [fd for fd in (renamed, signalled) if fd >= 0]
        self.server: ExecWakeup | None = None  # the exec server, where it starts at the first connection

    def wait(self, timeout_s: float, more: "Iterable[int]" = ()) -> None:
        """Wait until one of them, or of the descriptors in `more`, has something to read. Start a server that is due.

        Args:
            timeout_s: wait no longer.
        """
        client = self.server.fileno() if self.server else -1
        sources = [*self._own, *more, *([client] if client >= 0 else [])]
        for fd in select.select(sources, [], [], timeout_s)[0]:
            if fd in self._own:
                os.read(fd, 65536)
            elif fd == client and self.server:
                self.server.wake()
