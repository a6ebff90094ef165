"""Ports on which a job listens, where it shares the network of its machine with everybody there."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTENING = "0A"


def is_own(port: int, top: int) -> bool:
    """Whether a process below `top`, or any that is to be seen where that is 1, listens on this TCP port."""
    wanted = {f"socket:[{inode}]" for inode in _listening(port)}
    return bool(wanted) and any(link in wanted for pid in _below(top) for link in _sockets(pid))


def _listening(port: int) -> "Iterator[str]":
    """Inodes of the sockets that listen on the port."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/self/net/{name}") as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        for row in rows:
            if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port:
                yield row[9]


def _below(top: int) -> "list[int]":
    """Every descendant of `top`; in a process namespace of the job's own all processes are."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    if top == 1:
        return pids
    above = {pid: _parent(pid) for pid in pids}
    members = {top}
    while more := {pid for pid, parent in above.items() if parent in members} - members:
        members |= more
    return sorted(members - {top})


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def _sockets(pid: int) -> "Iterator[str]":
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
