"""Send messages to the broker without waiting for it. A sweep finds what gets lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

SLOW_S = 0.4
REST_S = 3.0
_rest = {"until": float("-inf")}


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
        log.warning("%s not sent, the rows tell: %s", what, exc or type(exc).__name__)
        ended = time.monotonic()
        if ended - begun >= SLOW_S:
            _rest["until"] = ended + REST_S
        return False
    return True
