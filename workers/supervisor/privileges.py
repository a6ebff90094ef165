"""Root gives up what it may, for ever: capabilities, groups, its user. For tiers where no other program does it."""

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CAPBSET_READ, _CAPBSET_DROP, _NO_NEW_PRIVS = 23, 24, 38
_VERSION_3 = 0x20080522


def give_up(uid: int, groups: "Sequence[int]" = ()) -> None:
    """Leave the calling process without a capability, now and after any exec, and under `uid`.

    Args:
        uid: user and group to become; 0 stays who it is.
        groups: further groups to be in; others are left.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while os.geteuid() == 0 and libc.prctl(_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)  # refused to one without CAP_SETPCAP, who cannot use it either
        capability += 1
    if uid:
        os.setgroups(groups)
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    nothing = bytes(24)  # effective, permitted and inheritable, in two halves
    if libc.capset(struct.pack("=Ii", _VERSION_3, 0), nothing) != 0 or libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "privileges")
