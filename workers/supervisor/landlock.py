"""Landlock by ctypes: a process gives up rights over files for itself and all it will ever start.

Needs no privilege and Linux 5.13; from 6.12 signals to processes outside and abstract sockets are refused too.
"""

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
SCOPES = 6  # the first version that knows them
_PR_SET_NO_NEW_PRIVS = 38
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | (1 << 14) | (1 << 15)  # truncate, ioctl on devices
_ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """Return the version the kernel speaks, 0 where there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))))


def restrict(read: "Iterable[str]", write: "Iterable[str]") -> None:
    """Give up every file except those beneath `read` (read, execute) and `write` (everything).

    Raises:
        OSError: the kernel refused; nothing is restricted then.
    """
    version = abi()
    everything = _ALL_BY_ABI.get(version, _ALL_BY_ABI[5] if version else 0)
    rules = _Ruleset(everything, 0, _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL if version >= SCOPES else 0)
    size = ctypes.sizeof(rules) if version >= SCOPES else 16 if version >= 4 else 8
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    try:
        for paths, rights in ((read, _READ), (write, everything)):
            for path in paths:
                _allow(ruleset, path, rights & everything)
        _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def scope() -> bool:
    """Give up signals to processes outside and abstract sockets of others; files stay as they are, mounts possible.

    Returns:
        False where the kernel knows no scopes (before 6.12).

    Raises:
        OSError: the kernel refused.
    """
    if abi() < SCOPES:
        return False
    rules = _Ruleset(0, 0, _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL)
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0))
    try:
        if os.geteuid():  # root may without, and setpriv sets it later
            _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
        rule = _PathBeneath(allowed, fd)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
