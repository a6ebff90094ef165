"""Layers of an image as the job's own: the platform's files, mounted so that they belong to the user of the job.

The kernel lets a user change only what belongs to it, also where the change goes into an upper layer: without this pip
could not remove a file of an engine from tier 3 on. Nothing is copied or written: a mount of its own says who owns what
lies below it (idmapped mounts, kernel 5.12; below an overlay 5.19). Needs root.
"""

import ctypes
import os

from workers.supervisor import userns
from workers.supervisor.ticket import Ticket

_CLONE_NEWNS = 0x20000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every machine
_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4
_ATTRIBUTES = 0x1 | 0x2 | 0x4 | 0x100000  # read-only, no setuid, no devices, idmapped
_libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def places(ticket: Ticket) -> list[str]:
    """Return where the layers of a ticket's image are found, the lowest first."""
    layers: list[str] = ticket.overlay.get("layers", [])
    at: str = ticket.overlay.get("mapped", "")
    return [os.path.join(at, str(number)) for number in range(len(layers))] if at else layers


def mount(ticket: Ticket) -> None:
    """Mount the layers at their `places`, in a mount namespace of the calling process and its children.

    Raises:
        OSError: the kernel or the file system cannot.
    """
    if not ticket.overlay.get("mapped"):
        return
    if _libc.unshare(_CLONE_NEWNS) or _libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None):
        _refuse("mounts of its own")
    ids = [(os.geteuid(), ticket.uid, 1)]
    users = userns.new(ids, ids)
    try:
        for layer, target in zip(ticket.overlay["layers"], places(ticket), strict=True):
            os.makedirs(target, exist_ok=True)
            attach(mapped_tree(layer, users), target)
    finally:
        os.close(users)


def mapped_tree(layer: str, users: int) -> int:
    """Open a folder for reading, whose files belong to whom the user namespace `users` says; `attach` mounts it.

    Raises:
        OSError: the kernel or the file system cannot.
    """
    tree = _call(layer, _OPEN_TREE, _AT_FDCWD, os.fsencode(layer), _OPEN_TREE_CLONE | os.O_CLOEXEC)
    try:
        wanted = _Attributes(_ATTRIBUTES, 0, 0, users)
        _call(layer, _MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), ctypes.sizeof(wanted))
    except OSError:
        os.close(tree)
        raise
    return tree


def attach(tree: int, target: str) -> None:
    """Mount what `mapped_tree` opened, and close it."""
    try:
        _call(target, _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)
    finally:
        os.close(tree)


def _call(name: str, number: int, *arguments: object) -> int:
    ctypes.set_errno(0)
    values = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *values)
    if result < 0:
        _refuse(name)
    return result


def _refuse(name: str) -> None:
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error), name)
