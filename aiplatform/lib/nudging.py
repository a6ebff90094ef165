"""Send messages to the broker without waiting for it. A sweep finds what gets lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

MIN_INTERVAL_S = 0.4
RETRY_DELAY_S = 3.0
TELL_S = 60.0
_rest = {"until": float("-inf")}


class Outage:
    """What the log says of a broker that is away: its beginning, a count once a minute, its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told_at = float("-inf")
        self._untold = 0  # messages lost since then
        self._away = False  # as far as the log knows

    def lost(self, what: str, why: str, now: float) -> None:
        """Say so, at most once a minute for all of them."""
        with self._lock:
            self._untold += 1
            if now - self._told_at < TELL_S:
                return
            count, self._untold, self._told_at, self._away = self._untold, 0, now, True
        if count == 1:
            log.warning("%s not sent, the rows tell: %s", what, why)
        else:
            log.warning("%s messages not sent, the rows tell; the last is %s: %s", count, what, why)

    def sent(self) -> None:
        """Log that sending works again, if the log states an outage."""
        if not self._away:
            return
        with self._lock:
            was_away, self._away = self._away, False
            count, self._untold = self._untold, 0
        if was_away:
            log.warning("messages are sent again; %s more were not", count)


_outage = Outage()


def attempt(send: Callable[[], object], what: str) -> bool:
    """Call `send` and tell whether it went well; nothing it raises gets out.

    A broker that hangs answers every caller late. So after a failure that took long nothing is
    sent for three seconds, and requests and looks go on at their usual speed.

    Args:
        what: names the nudge in the log.
    """
    begun = time.monotonic()
    if begun < _rest["until"]:
        return False
    try:
        send()
    except Exception as exc:  # noqa: BLE001 - whatever the transport raises, the row is already saved
        ended = time.monotonic()
        _outage.lost(what, str(exc) or type(exc).__name__, ended)
        if ended - begun >= MIN_INTERVAL_S:
            _rest["until"] = ended + RETRY_DELAY_S
        return False
    _outage.sent()
    return True
