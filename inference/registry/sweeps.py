"""Sweeps over rows of many users: an error in one of them stops none of the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def kept_apart(what: str) -> Iterator[None]:
    """Write down what goes wrong within, as `what`, and go on."""
    try:
        yield
    except Exception:
        log.exception("%s", what)
