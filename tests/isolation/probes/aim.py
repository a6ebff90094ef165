"""What the probes aim at, and how they ask the kernel."""

import ctypes
import os

TARGETS = {}
"""Filled by the runner: paths, process ids and names of the platform (`secret` …) and of two other jobs (`mine`: of the
same person, `other`: of another one)."""

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = os.uname().machine == "x86_64"
EPERM, EACCES, ENOSYS = 1, 13, 38


def call(number, *args):
    """Ask the kernel by number; what is refused raises."""
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    found = libc.syscall(ctypes.c_long(number), *words)
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return found


def lets_pass(number, *args):
    """Whether the kernel would do it: with arguments that are wrong, it says so only to those who may."""
    try:
        call(number, *args)
    except OSError as exc:
        return exc.errno not in (EPERM, EACCES, ENOSYS)
    return True


def opens(number, *args):
    """Whether a call hands out a descriptor."""
    os.close(call(number, *args))
    return True


def reads(path):
    with open(path, "rb") as file:
        return bool(file.read(1)) or True


def writes(path):
    with open(path, "ab") as file:
        file.write(b"x")
    return True


def writes_back(path, value=None):
    """Write into a setting what stands there already."""
    with open(path, "r+b", buffering=0) as file:
        before = file.read()
        file.seek(0)
        file.write(value(before) if value else before)
    return True


def in_a_child(work):
    """Whether `work` ends well in a process of its own, which keeps what it did to itself."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def is_there(pid, mark=b"neighbour"):
    """Whether this number means the process that was aimed at, and not one of our own."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return mark in file.read()
    except OSError:
        return False


def aimed(pid, mark=b"neighbour"):
    """The number of a process that we see."""
    if not is_there(pid, mark):
        raise ProcessLookupError(pid)
    return pid
