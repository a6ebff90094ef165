"""System calls that no job needs are refused, in every tier: a filter that the kernel asks before each call.

Whatever a job starts keeps the filter, for ever. A refused call answers EPERM, as if a right were missing.
A filter sees numbers only: clone3 keeps its flags in memory, so it answers ENOSYS and libc falls back to clone.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import os
import struct
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOUNTS = "makes the machine's files appear where they are not meant to"
NAMESPACES = "becomes root in a world of its own, where most faults of kernels were found"
KEYS = "keyrings are shared by all processes of a user, sandbox or not"
CODE = "runs code in the kernel, or replaces it"
CLOCK = "changes the clock of the whole machine"
SWAP = "manages memory and disks of the whole machine"
PORTS = "talks to hardware directly"
OLD = "nothing made in this century calls it"

#: name, number on x86_64 and on aarch64 (-1: has none), why it is refused. One row per call.
CALLS = (
    ("mount", 165, 40, MOUNTS), ("umount2", 166, 39, MOUNTS), ("pivot_root", 155, 41, MOUNTS),
    ("open_tree", 428, 428, MOUNTS), ("move_mount", 429, 429, MOUNTS), ("fsopen", 430, 430, MOUNTS),
    ("fsconfig", 431, 431, MOUNTS), ("fsmount", 432, 432, MOUNTS), ("fspick", 433, 433, MOUNTS),
    ("mount_setattr", 442, 442, MOUNTS), ("open_tree_attr", 467, 467, MOUNTS),
    ("chroot", 161, 51, "leaves a sandbox that is one itself"),
    ("open_by_handle_at", 304, 265, "opens files past the folders that close the way to them"),
    ("unshare", 272, 97, NAMESPACES), ("setns", 308, 268, NAMESPACES),
    ("ptrace", 101, 117, "takes over a process, as the sandbox's own first one; debuggers need it"),
    ("perf_event_open", 298, 241, "watches the whole machine; perf and Nsight need it"),
    ("bpf", 321, 280, CODE), ("kexec_load", 246, 104, CODE), ("kexec_file_load", 320, 294, CODE),
    ("init_module", 175, 105, CODE), ("finit_module", 313, 273, CODE), ("delete_module", 176, 106, CODE),
    ("userfaultfd", 323, 282, "holds the kernel up in the middle of a call, which exploits build on"),
    ("io_uring_setup", 425, 425, "a second way to most calls, past this filter; libraries fall back"),
    ("io_uring_enter", 426, 426, "see io_uring_setup"), ("io_uring_register", 427, 427, "see io_uring_setup"),
    ("add_key", 248, 217, KEYS), ("request_key", 249, 218, KEYS), ("keyctl", 250, 219, KEYS),
    ("fanotify_init", 300, 262, "watches the files of others"),
    ("syslog", 103, 116, "reads the kernel's messages, which tell addresses"),
    ("reboot", 169, 142, "ends the machine"),
    ("settimeofday", 164, 170, CLOCK), ("clock_settime", 227, 112, CLOCK), ("adjtimex", 159, 171, CLOCK),
    ("clock_adjtime", 305, 266, CLOCK),
    ("swapon", 167, 224, SWAP), ("swapoff", 168, 225, SWAP), ("quotactl", 179, 60, SWAP),
    ("quotactl_fd", 443, 443, SWAP), ("acct", 163, 89, SWAP),
    ("iopl", 172, -1, PORTS), ("ioperm", 173, -1, PORTS),
    ("sysfs", 139, -1, OLD), ("uselib", 134, -1, OLD), ("_sysctl", 156, -1, OLD),
)  # fmt: skip
NAMES = frozenset(name for name, *_rest in CALLS)

#: by `uname -m`: column of CALLS, the kernel's word for the machine, numbers of clone, ioctl and socket
MACHINES = {"x86_64": (1, 0xC000003E, 56, 16, 41), "aarch64": (2, 0xC00000B7, 220, 29, 198)}
CLONE3 = 435
X32 = 0x40000000  # calls of another word size on x86_64: a second list of numbers, which nobody uses
#: calls that are refused by one argument: which of them, and the values
NEW_NAMESPACES = 0x7E020000  # any of CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
TYPE_INTO_TERMINALS = (0x5412, 0x541C)  # ioctl TIOCSTI and TIOCLINUX: what the terminal's owner would seem to type
FAMILIES = (38, 40)  # socket AF_ALG (the kernel's ciphers, full of faults) and AF_VSOCK (past the network to the host)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24  # where the kernel lays them; low halves, little-endian
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVS, _GET_SECCOMP, _SET_SECCOMP, _FILTER = 38, 21, 22, 2


def works() -> bool:
    """Whether this kernel takes filters, and the numbers of its calls are known here."""
    return os.uname().machine in MACHINES and ctypes.CDLL(None).prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def program(allowed: "Iterable[str]" = (), machine: str = "") -> bytes:
    """Return the filter as the kernel takes it.

    Args:
        allowed: names of CALLS that may be used after all, as "ptrace" for a debugger.
        machine: one of MACHINES; this one by default.
    """
    return _program(frozenset(allowed), machine or os.uname().machine)


@cache  # the fork server makes the usual one once for all supervisors
def _program(names: "frozenset[str]", machine: str) -> bytes:
    column, word, clone, ioctl, socket = MACHINES[machine]
    steps: list[tuple[int, int, str, str]] = [
        (_LOAD, _MACHINE, "", ""), (_EQUAL, word, "", "unknown"), (_LOAD, _NUMBER, "", ""),
        *([(_AT_LEAST, X32, "unknown", "")] if machine == "x86_64" else []),
        (_EQUAL, CLONE3, "unknown", ""),
        (_EQUAL, ioctl, "ioctl", ""), (_EQUAL, clone, "clone", ""), (_EQUAL, socket, "socket", ""),
    ]  # fmt: skip
    for call in CALLS:
        number = call[column]
        assert isinstance(number, int)
        if number >= 0 and call[0] not in names:
            steps.append((_EQUAL, number, "refused", ""))
    labels = {"": -1}
    for label, more in (
        ("otherwise", [(_RETURN, _ALLOW, "", "")]),
        ("ioctl", [(_LOAD, _ARGUMENT_1, "", ""), *_any_of(TYPE_INTO_TERMINALS)]),
        ("socket", [(_LOAD, _ARGUMENT_0, "", ""), *_any_of(FAMILIES)]),
        ("clone", [(_LOAD, _ARGUMENT_0, "", ""), (_ANY_BIT, NEW_NAMESPACES, "refused", "allow")]),
        ("allow", [(_RETURN, _ALLOW, "", "")]),
        ("unknown", [(_RETURN, _ERRNO | errno.ENOSYS, "", "")]),
        ("refused", [(_RETURN, _ERRNO | errno.EPERM, "", "")]),
    ):
        labels[label] = len(steps)
        steps += more
    return b"".join(
        struct.pack("<HBBI", kind, _ahead(at, labels[yes]), _ahead(at, labels[no]), value)
        for at, (kind, value, yes, no) in enumerate(steps)
    )


def _any_of(values: "tuple[int, ...]") -> "list[tuple[int, int, str, str]]":
    """Steps that refuse these values of what was loaded, and allow all others."""
    return [(_EQUAL, value, "refused", "") for value in values] + [(_RETURN, _ALLOW, "", "")]


def _ahead(at: int, target: int) -> int:
    """How far a jump goes; 0 is the next step."""
    return target - at - 1 if target >= 0 else 0


def load(code: bytes) -> None:
    """Put the calling process and all that it will start under the filter.

    Raises:
        OSError: the kernel refused, or was built without filters.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    steps = ctypes.create_string_buffer(code, len(code))
    filter_of = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(steps))
    for call in ((_NO_NEW_PRIVS, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER, filter_of, 0, 0)):
        if libc.prctl(*call) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "seccomp")
