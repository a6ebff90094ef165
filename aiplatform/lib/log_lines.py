"""Log formatting: one event is one line, whatever names contain."""

from __future__ import annotations

import logging
import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TOKEN = re.compile(r"\b(aip_[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{39}")


class OneLine(logging.Formatter):
    """Escapes line ends and other control characters of a message, and cuts API tokens to their prefix.

    A traceback follows on lines of its own, each indented, so that none can pass for an event.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        text = _CONTROL.sub(lambda match: repr(match[0])[1:-1], super().formatMessage(record))
        return _TOKEN.sub(r"\1…", text)

    def formatException(self, ei: object) -> str:
        return _TOKEN.sub(r"\1…", "  | " + super().formatException(ei).replace("\n", "\n  | "))  # type: ignore[arg-type]  # `logging` takes what `sys.exc_info` gives
