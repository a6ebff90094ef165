"""File notifications of the Linux kernel (inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

IN_MOVED_TO = 0x80
_IN_ONLYDIR = 0x0100_0000
_IN_Q_OVERFLOW = 0x4000
_HEADER = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_BUFFER_BYTES = 64 << 10
OVERFLOW = -1
"""Instead of a watch: the kernel dropped events, so anything may have changed."""


class Inotify:
    """Reports files that appear in watched folders under a new name, as those that are replaced by rename.

    `descriptor` is readable when `read` has something to return. Only changes made on this machine are reported, also
    on network file systems.

    Raises:
        OSError: the kernel offers none, or the user has too many.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def watch(self, folder: Path) -> int:
        """Watch a folder; return the number of the watch, the same one for the same folder.

        Raises:
            OSError: it does not exist, or there are too many watches.
        """
        mask = IN_MOVED_TO | _IN_ONLYDIR
        return self._checked(self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), ctypes.c_uint32(mask)))

    def forget(self, watch: int) -> None:
        """End a watch; one of a folder that was deleted has ended already."""
        self._libc.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[tuple[int, str]]:
        """Return (watch, name of the file) of what happened, in its order; `OVERFLOW` where some of it is unknown."""
        try:
            data = os.read(self.descriptor, _BUFFER_BYTES)
        except BlockingIOError:
            return []
        events, offset = [], 0
        while offset < len(data):
            watch, mask, _cookie, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
            offset += length
            if mask & _IN_Q_OVERFLOW:
                events.append((OVERFLOW, ""))
            elif mask & IN_MOVED_TO:
                events.append((watch, name))
        return events

    def close(self) -> None:
        os.close(self.descriptor)

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
