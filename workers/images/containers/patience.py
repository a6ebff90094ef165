"""How long a registry may take in all, and how slow it may be: one that sends a byte now and then holds nobody up."""

from __future__ import annotations

import contextlib
import socket
import time
from threading import Lock, Timer
from types import TracebackType

FIRST_S = 300.0  # a line may be slow to begin
MIN_BYTES_S = 128 << 10
MAX_DURATION_S = 4 * 3600.0


class Pace:
    """Whether bytes come fast enough on the whole: after the first minutes at a least rate, and never for hours.

    Args:
        most_s: how long they may come at all.
    """

    def __init__(self, most_s: float = MAX_DURATION_S) -> None:
        self._begun, self._most_s, self._done = time.monotonic(), most_s, 0

    def keeps_up(self, count: int) -> bool:
        """Count bytes that came; whether to go on."""
        self._done += count
        spent = time.monotonic() - self._begun
        return spent < self._most_s and (spent < FIRST_S or self._done >= spent * MIN_BYTES_S)


class Patience:
    """Ends the connection that it watches when the time is over; used as a context.

    Attributes:
        over: whether the time ran out; what was read is then cut short.
    """

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._seconds, self._lock = seconds, Lock()
        self._channel: socket.socket | None = None
        self._timer: Timer | None = None
        self._end = time.monotonic() + seconds

    def __enter__(self) -> Patience:
        self.extend(self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer:
            self._timer.cancel()

    @property
    def left_s(self) -> float:
        """What is left of the time; never nothing, so that it may be a time-out."""
        return max(0.1, self._end - time.monotonic())

    def extend(self, seconds: float) -> None:
        """Restart the time; an expired one stays expired."""
        if self._timer:
            self._timer.cancel()
        self._end = time.monotonic() + seconds
        self._timer = Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, channel: socket.socket) -> None:
        """Let the end of the time end this connection.

        Raises:
            TimeoutError: the time is over already.
        """
        with self._lock:
            self._channel = channel
            if self.over:
                raise TimeoutError

    def _cut(self) -> None:
        with self._lock:
            self.over = True
            if self._channel:
                with contextlib.suppress(OSError):  # it is closed
                    socket.socket.shutdown(self._channel, socket.SHUT_RDWR)  # not TLS's own, which changes the object
