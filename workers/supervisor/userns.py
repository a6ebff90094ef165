"""User namespaces: whose users and groups inside are who outside."""

import ctypes
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_CLONE_NEWUSER = 0x10000000
_libc = ctypes.CDLL(None, use_errno=True)


def new(uids: "Sequence[Sequence[int]]", gids: "Sequence[Sequence[int]]") -> int:
    """Open a new user namespace; a child holds it until it is open.

    Args:
        uids, gids: (first inside, first outside, how many) of users and of groups.

    Raises:
        OSError: the kernel, or a rule of the distribution, forbids it.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _hold(uids[0][1], writer)
    os.close(writer)
    try:
        if os.read(reader, 1) != b"1":
            raise PermissionError(1, "no user namespace may be made", "user namespace")
        if os.geteuid():  # who is not root may name its own group only so
            _write(f"/proc/{pid}/setgroups", "deny")
        for name, ids in (("uid_map", uids), ("gid_map", gids)):
            _write(f"/proc/{pid}/{name}", "\n".join(" ".join(map(str, line)) for line in ids))
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(reader)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _hold(owner: int, tell: int) -> "NoReturn":
    """Make the namespace and wait to be ended. What is used in it counts as its owner's, not as the platform's.

    Where only root may make one, root does.
    """
    try:
        if os.geteuid() == 0:
            os.seteuid(owner)
        created = _libc.unshare(_CLONE_NEWUSER) == 0
        if not created:
            os.seteuid(os.getuid())
            created = _libc.unshare(_CLONE_NEWUSER) == 0
        if created:
            os.write(tell, b"1")
            signal.pause()
    finally:
        os._exit(1)


def enter(users: int) -> None:
    """Become root of a user namespace that is open.

    Raises:
        OSError: the kernel refused.
    """
    if _libc.setns(users, _CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "user namespace")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _write(path: str, text: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(opened, text.encode())  # the kernel takes it in one piece
    finally:
        os.close(opened)
