"""Processes and memory of other jobs, of the same person and of others, and of the platform."""

import ctypes
import mmap
import os
import resource
import signal
import socket

from tests.isolation.probes.aim import TARGETS, X86, aimed, call, in_a_child, is_there, libc, reads

WATCHES = b"supervisor"
_PTRACE_SEIZE, _PTRACE_DETACH, _WALL = 0x4206, 17, 0x40000000


def _supervisor():
    return aimed(TARGETS["supervisor"], WATCHES)


def list_other_processes():
    return is_there(TARGETS["other"]["pid"]) or is_there(TARGETS["supervisor"], WATCHES)


def _environment(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return b"AIP_CANARY" in file.read()


def read_environment_of_others():
    return _environment(aimed(TARGETS["other"]["pid"]))


def read_environment_of_the_same_person():
    return _environment(aimed(TARGETS["mine"]["pid"]))


def read_supervisor_environment():
    with open(f"/proc/{_supervisor()}/environ", "rb") as file:
        return file.read() is not None


def signal_others():
    return os.kill(aimed(TARGETS["other"]["pid"]), 0) is None


def signal_the_same_person():
    return os.kill(aimed(TARGETS["mine"]["pid"]), 0) is None


def signal_supervisor():
    return os.kill(_supervisor(), 0) is None


def _traced(pid):
    if libc.ptrace(_PTRACE_SEIZE, pid, 0, 0) != 0:
        return False
    libc.ptrace(_PTRACE_DETACH, pid, 0, 0)
    return True


def trace_others():
    return in_a_child(lambda: _traced(aimed(TARGETS["other"]["pid"])))


def trace_the_same_person():
    return in_a_child(lambda: _traced(aimed(TARGETS["mine"]["pid"])))


def trace_supervisor():
    return in_a_child(lambda: _traced(_supervisor()))


def trace_first_process_of_its_sandbox():
    return in_a_child(lambda: _traced(1))


def trace_its_own_children():
    """What debuggers do; it harms nobody else."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        return in_a_child(lambda: _traced(os.getppid())) or _traced(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, _WALL)


def read_memory_of_the_same_person():
    with open(f"/proc/{aimed(TARGETS['mine']['pid'])}/mem", "rb"):
        return True


def read_memory_of_supervisor():
    with open(f"/proc/{_supervisor()}/mem", "rb"):
        return True


def copy_memory_of_the_same_person():
    """process_vm_readv of nothing: the right is asked for before the address."""
    pid = aimed(TARGETS["mine"]["pid"])
    here, there = ctypes.create_string_buffer(8), (ctypes.c_uint64 * 2)(8, 8)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(here), 8)
    try:
        call(310 if X86 else 270, pid, local, 1, there, 1, 0)
    except OSError as exc:
        return exc.errno == 14
    return True


def take_descriptor_of_the_same_person():
    process = call(434, aimed(TARGETS["mine"]["pid"]), 0)
    try:
        os.close(call(438, process, 1, 0))
    finally:
        os.close(process)
    return True


def list_descriptors_of_supervisor():
    return bool(os.listdir(f"/proc/{_supervisor()}/fd"))


def enter_root_of_others():
    return bool(os.listdir(f"/proc/{aimed(TARGETS['other']['pid'])}/root"))


def enter_folder_of_the_same_person():
    return os.listdir(f"/proc/{aimed(TARGETS['mine']['pid'])}/cwd") is not None


def inherit_descriptors():
    """Descriptors of the platform that nobody closed, beyond the usual three."""
    names = set(os.listdir("/proc/self/fd")) - {"0", "1", "2"}  # one more than there are: what listed them
    return any(os.path.lexists(f"/proc/self/fd/{name}") for name in names)


def renice_the_same_person():
    pid = aimed(TARGETS["mine"]["pid"])
    return os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)) is None


def renice_others():
    pid = aimed(TARGETS["other"]["pid"])
    return os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)) is None


def move_others_to_other_cores():
    pid = aimed(TARGETS["other"]["pid"])
    return os.sched_setaffinity(pid, os.sched_getaffinity(pid)) is None


def change_limits_of_others():
    pid = aimed(TARGETS["other"]["pid"])
    return resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE)) is not None


def change_limits_of_supervisor():
    pid = _supervisor()
    return resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE)) is not None


def enter_namespaces_of_others():
    with open(f"/proc/{aimed(TARGETS['other']['pid'])}/ns/mnt") as space:
        return in_a_child(lambda: libc.setns(space.fileno(), 0) == 0)


def _segment(key):
    found = libc.shmget(key, 8, 0)
    return found >= 0 and libc.shmat(found, None, 0o10000) != -1


def read_shared_memory_of_others():
    return _segment(TARGETS["other"]["segment"]) or reads(TARGETS["other"]["shared"])


def read_shared_memory_of_the_same_person():
    return _segment(TARGETS["mine"]["segment"]) or reads(TARGETS["mine"]["shared"])


def _reaches(name):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(name)
    return True


def connect_platform_socket():
    return _reaches(TARGETS["broker"])


def connect_abstract_socket_of_platform():
    return _reaches("\0" + TARGETS["abstract"])


def connect_abstract_socket_of_the_same_person():
    return _reaches("\0" + TARGETS["mine"]["abstract"])


def connect_abstract_socket_of_others():
    return _reaches("\0" + TARGETS["other"]["abstract"])


def connect_port_of_platform():
    """The port alone: what listens there asks for a secret."""
    with socket.create_connection(("127.0.0.1", TARGETS["port"]), 5):
        return True


def share_keyrings():
    """Add a key to the keyring of its user, which every process of that user has, sandbox or not."""
    key = call(248 if X86 else 217, b"user", b"aip-canary", b"x", 1, -4)
    call(250 if X86 else 219, 9, key, -4)
    return True


def outlive_the_job():
    """A daemon of two forks and an own session; the tests look for it after the end."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.execve("/bin/sleep", ["/bin/sleep", str(TARGETS["sleep"])], os.environ)
        os._exit(0)
    os.wait()


def map_memory_of_machine():
    with open("/dev/mem", "rb") as file:
        return mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) is not None


PROBES = (
    list_other_processes, read_environment_of_others, read_environment_of_the_same_person,
    read_supervisor_environment, signal_others, signal_the_same_person, signal_supervisor,
    trace_others, trace_the_same_person, trace_supervisor, trace_first_process_of_its_sandbox, trace_its_own_children,
    read_memory_of_the_same_person, read_memory_of_supervisor, copy_memory_of_the_same_person,
    take_descriptor_of_the_same_person, list_descriptors_of_supervisor, enter_root_of_others,
    enter_folder_of_the_same_person, inherit_descriptors, renice_others, renice_the_same_person,
    move_others_to_other_cores, change_limits_of_others, change_limits_of_supervisor, enter_namespaces_of_others,
    read_shared_memory_of_others, read_shared_memory_of_the_same_person, connect_platform_socket,
    connect_abstract_socket_of_platform, connect_abstract_socket_of_others,
    connect_abstract_socket_of_the_same_person, connect_port_of_platform, share_keyrings, outlive_the_job,
)  # fmt: skip
