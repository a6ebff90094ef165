"""What a job may take away from all others on the machine. Everything is given back at once."""

import ctypes
import mmap
import os
import resource
import signal

from tests.isolation.probes.aim import TARGETS, in_a_child, libc

MANY_FILES = 1 << 17


def raise_own_limits():
    """Limits that the platform set: no core is written."""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return True


def raise_own_priority():
    return in_a_child(lambda: os.nice(-1) is not None)


def become_realtime():
    return in_a_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) is None)


def be_spared_when_memory_runs_out():
    """The kernel takes jobs first; a job that may change that is taken after the platform."""

    def lower():
        with open("/proc/self/oom_score_adj", "r+") as file:
            now = int(file.read())
            file.seek(0)
            file.write(str(min(now, 0) if now > 0 else now - 1))
        return True

    return in_a_child(lower)


def lock_memory():
    """Memory that cannot be swapped, without bound, below what it may hold: cards want it, others pay for it."""
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY


def open_files_without_end():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return hard == resource.RLIM_INFINITY or hard > MANY_FILES


def take_watches_of_the_platform():
    """All inotify instances of its user: where that is the platform's, supervisors wake late."""
    made = []
    try:
        while len(made) < 100_000 and (found := libc.inotify_init1(0)) >= 0:
            made.append(found)
        exhausted = ctypes.get_errno() == 24
    finally:
        for found in made:
            os.close(found)
    return exhausted and os.getuid() == TARGETS["platform_uid"]


def _fills(folder):
    path = f"{folder}/aip-hog-{os.getpid()}"
    found = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(found, 0, TARGETS["memory_bytes"] + (64 << 20))
    finally:
        os.close(found)
        os.remove(path)
    return True


def fill_the_disk():
    """More into its outputs than it may hold in memory."""
    return _fills(TARGETS["run"] + "/outputs")


def fill_shared_memory():
    return in_a_child(lambda: _fills("/dev/shm"))


def fork_without_end():
    made = []
    try:
        for _ in range(TARGETS["processes"] + 64):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            made.append(pid)
    finally:
        for pid in made:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return True


def hold_memory_without_end():
    """The last of all: where the kernel keeps the bound, the job ends by it."""

    def hold():
        held = mmap.mmap(-1, TARGETS["memory_bytes"] + (64 << 20))
        for at in range(0, len(held), 4096):
            held[at] = 1
        return True

    return in_a_child(hold)


PROBES = (
    raise_own_limits, raise_own_priority, become_realtime, be_spared_when_memory_runs_out, lock_memory,
    open_files_without_end, take_watches_of_the_platform, fill_the_disk, fill_shared_memory, fork_without_end,
    hold_memory_without_end,
)  # fmt: skip
