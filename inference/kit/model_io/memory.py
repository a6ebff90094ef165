"""Keep freed memory for the next request instead of returning it page by page."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
MAX_KEPT_BYTES = 32 << 20  # bytes of one block; glibc takes no more
MAX_CACHED_BYTES = 256 << 20


def keep_freed() -> None:
    """Tell glibc to hold on to freed blocks; elsewhere nothing happens.

    By default each tensor of a few hundred KB is mapped, touched page by page and unmapped again for every
    request: on a virtual machine the page faults cost more than decoding the picture (8 ms for a batch of 8).
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_THRESHOLD, MAX_KEPT_BYTES)
    mallopt(M_TRIM_THRESHOLD, MAX_CACHED_BYTES)
    mallopt(M_ARENA_MAX, 2)
