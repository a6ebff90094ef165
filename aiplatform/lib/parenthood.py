"""Relations between processes that only the kernel can keep: ending with the parent, adopting orphans."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_libc = ctypes.CDLL(None)


def die_with_parent(number: signal.Signals) -> None:
    """Have the kernel send `number` to this process when the thread that started it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def adopts_orphans() -> bool:
    """Whether this process becomes the parent of descendants whose own parent ends."""
    on = ctypes.c_int()
    _libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(on), 0, 0, 0)
    return bool(on.value)


def adopt_orphans(*, on: bool) -> None:
    """Become, or stop being, the parent of descendants whose own parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
