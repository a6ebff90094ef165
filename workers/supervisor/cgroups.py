"""Limits that the kernel keeps for one job: memory, number of processes, processor time. Root only.

cgroup v2 (https://docs.kernel.org/admin-guide/cgroup-v2.html) where its memory controller is there, else v1
(https://docs.kernel.org/admin-guide/cgroup-v1/). Where neither can be written, the group holds nothing and says so.
"""

import os
import signal

from workers.supervisor import processes, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.ticket import Ticket

ROOT = "/sys/fs/cgroup"
PARENT = "aiplatform"
PERIOD_US = 100_000
CONTROLLERS = ("memory", "pids", "cpu")


def of_job(ticket: "Ticket") -> "Group":
    """Make the group of one rank of a job, with the limits of its ticket."""
    name = f"job-{ticket.job}-{ticket.attempt}-{ticket.rank}-{os.getpid()}"
    return Group(name, memory_bytes=ticket.memory_bytes, processes=ticket.processes, cpus=ticket.cpus_most)


class Group:
    """One job's group. `works` tells whether the kernel took it.

    Args:
        name: unique on this machine, also after a crash.
        memory_bytes, processes, cpus: 0 is no limit; `cpus` may be a fraction.
    """

    def __init__(self, name: str, *, memory_bytes: int = 0, processes: int = 0, cpus: float = 0.0) -> None:
        self.unified = "memory" in _read(os.path.join(ROOT, "cgroup.controllers")).split()
        if self.unified:
            self.folders = [os.path.join(ROOT, PARENT, name)]
        else:
            self.folders = [os.path.join(ROOT, controller, PARENT, name) for controller in CONTROLLERS]
        quota_us = int(cpus * PERIOD_US)
        if self.unified:
            limits = {
                "memory.max": memory_bytes, "memory.swap.max": 0 if memory_bytes else None, "pids.max": processes,
                "cpu.max": f"{quota_us} {PERIOD_US}" if quota_us else 0,
            }  # fmt: skip
        else:
            limits = {
                "memory.limit_in_bytes": memory_bytes, "pids.max": processes,
                "cpu.cfs_period_us": PERIOD_US if quota_us else 0, "cpu.cfs_quota_us": quota_us,
            }  # fmt: skip
        self.works = self._make({key: value for key, value in limits.items() if value or key == "memory.swap.max"})

    def enter(self) -> None:
        """Put the calling process, and so all it starts, into the group."""
        for folder in self.folders if self.works else []:
            _write(os.path.join(folder, "cgroup.procs"), str(os.getpid()))

    def pids(self) -> list[int]:
        """The processes in the group now, wherever they hang in the tree."""
        return [int(pid) for pid in _read(os.path.join(self.folders[0], "cgroup.procs")).split()] if self.works else []

    def kill(self) -> None:
        """Kill every process in the group: at once where the kernel can (Linux 5.14, v2), else one by one."""
        at_once = os.path.join(self.folders[0], "cgroup.kill")
        if self.works and os.path.exists(at_once):
            _write(at_once, "1")
        else:
            processes.send(self.pids(), signal.SIGKILL)

    def out_of_memory(self) -> bool:
        """Whether the kernel ended one of its processes because the group held too much."""
        name = "memory.events" if self.unified else "memory.oom_control"
        lines = _read(os.path.join(self.folders[0], name)).splitlines()
        return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in lines)

    def allow(self, memory_bytes: int) -> None:
        """Set another bound on memory; 0 changes nothing."""
        name = "memory.max" if self.unified else "memory.limit_in_bytes"
        path = os.path.join(self.folders[0], name)
        if self.works and memory_bytes and os.path.exists(path):
            try:
                _write(path, str(memory_bytes))
            except OSError:  # v1 refuses a bound below what is held; the supervisor keeps it then
                return

    def remove(self) -> None:
        """Give the group back; one that still holds a process stays."""
        for folder in self.folders:
            try:
                os.rmdir(folder)
            except OSError:
                continue

    def _make(self, limits: "dict[str, int | str | None]") -> bool:
        try:
            if self.unified:
                wanted = " ".join(f"+{controller}" for controller in CONTROLLERS)
                _write(os.path.join(ROOT, "cgroup.subtree_control"), wanted)
                os.makedirs(os.path.join(ROOT, PARENT), exist_ok=True)
                _write(os.path.join(ROOT, PARENT, "cgroup.subtree_control"), wanted)
            for folder in self.folders:
                os.makedirs(folder, exist_ok=True)
            for key, value in limits.items():
                home = self.folders[0] if self.unified else self._home(key)
                if value is not None and os.path.exists(os.path.join(home, key)):
                    _write(os.path.join(home, key), str(value))
        except OSError:
            self.remove()
            return False
        return True

    def _home(self, key: str) -> str:
        return next(folder for folder in self.folders if f"/{key.partition('.')[0]}/" in folder)


def available() -> bool:
    """Whether this process may make groups here."""
    group = Group(f"probe-{os.getpid()}", processes=10)
    group.remove()
    return group.works


def _read(path: str) -> str:
    try:
        return records.text(path)
    except OSError:
        return ""


def _write(path: str, value: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(opened, value.encode())
    finally:
        os.close(opened)
