"""Interfaces of the kernel: its settings, its memory, its modules, namespaces, mounts and devices."""

import ctypes
import fcntl
import glob
import os
import socket
import stat
import struct
import time

from tests.isolation.probes.aim import TARGETS, X86, call, in_a_child, lets_pass, libc, opens, reads, writes_back

_NEW_USER, _NEW_MOUNTS, _NEW_NETWORK, _NEW_PIDS = 0x10000000, 0x20000, 0x40000000, 0x20000000
_REMOUNT_WRITABLE = 32 | 4096  # MS_REMOUNT | MS_BIND, without MS_RDONLY


def write_core_pattern():
    """The program that the kernel starts as root for a crash, on the machine itself."""
    return writes_back("/proc/sys/kernel/core_pattern")


def write_kernel_settings():
    return writes_back("/proc/sys/vm/overcommit_memory")


def write_its_host_name():
    return libc.sethostname(os.uname().nodename.encode(), len(os.uname().nodename)) == 0


def _opens_file(path, flags=os.O_WRONLY):
    """Open a file of the kernel, which is no mask of /dev/null's."""
    found = os.open(path, flags)
    try:
        return stat.S_ISREG(os.fstat(found).st_mode)
    finally:
        os.close(found)


def press_sysrq():
    return _opens_file("/proc/sysrq-trigger")


def set_uevent_helper():
    return _opens_file("/sys/kernel/uevent_helper")


def set_release_agent():
    """The program that the kernel starts as root when a cgroup empties."""
    for path in ["/sys/fs/cgroup/release_agent", *glob.glob("/sys/fs/cgroup/*/release_agent")]:
        try:
            return _opens_file(path)
        except OSError:
            continue
    return False


def leave_its_cgroup():
    def leave():
        for path in ["/sys/fs/cgroup/cgroup.procs", *glob.glob("/sys/fs/cgroup/*/cgroup.procs")]:
            try:
                with open(path, "w") as file:
                    file.write("0")
            except OSError:
                continue
            return True
        return False

    return in_a_child(leave)


def write_sys():
    return writes_back("/sys/kernel/mm/transparent_hugepage/enabled", lambda was: was.split(b"[")[1].split(b"]")[0])


def register_binary_format():
    return _opens_file("/proc/sys/fs/binfmt_misc/register")


def read_kernel_memory():
    with open("/proc/kcore", "rb") as file:
        return bool(file.read(4))


def read_kernel_addresses():
    with open("/proc/kallsyms") as file:
        return any(int(line.split()[0], 16) for _n, line in zip(range(100), file, strict=False))


def read_memory_of_machine():
    return reads("/dev/mem")


def read_kernel_log():
    size = ctypes.create_string_buffer(64)
    try:
        return call(103 if X86 else 116, 3, size, 64) >= 0
    except OSError:
        return bool(os.read(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK), 512))


def write_kernel_log():
    os.close(os.open("/dev/kmsg", os.O_WRONLY))
    return True


def open_debugfs():
    return bool(os.listdir("/sys/kernel/debug") + os.listdir("/sys/kernel/tracing"))


def load_kernel_module():
    return lets_pass(175 if X86 else 105, 0, 0, 0) or lets_pass(313 if X86 else 273, -1, 0, 0)


def load_another_kernel():
    return lets_pass(246 if X86 else 104, 0, 17, 0, 0xFF)


def load_bpf():
    """A map of one element, which anything with programs begins with."""
    return opens(321 if X86 else 280, 0, ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 4, 1, 0), 48), 48)


def watch_the_machine():
    """perf events of all processes on the first core."""
    about = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 0), 128)
    return opens(298 if X86 else 241, about, -1, 0, -1, 0)


def handle_page_faults():
    return opens(323 if X86 else 282, 1)


def use_io_uring():
    return opens(425, 1, ctypes.create_string_buffer(120))


def watch_all_files():
    return opens(300 if X86 else 262, 0, 0)


def manage_swap():
    return lets_pass(167 if X86 else 224, b"/nonexistent", 0)


def account_all_processes():
    return lets_pass(163 if X86 else 89, b"/nonexistent")


def set_clock():
    return time.clock_settime(time.CLOCK_REALTIME, time.time()) is None


def adjust_clock():
    """The frequency of the clock, written as it was."""
    state = ctypes.create_string_buffer(208)
    call(159 if X86 else 171, state)
    struct.pack_into("I", state, 0, 2)
    call(159 if X86 else 171, state)
    return True


def restart_the_machine():
    return lets_pass(169 if X86 else 142, 0, 0, 0, 0)


def use_hardware_ports():
    return X86 and in_a_child(lambda: call(172, 3) == 0)


def use_ciphers_of_the_kernel():
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return True


def reach_the_host_of_a_virtual_machine():
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


def listen_to_the_network():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


def configure_the_network():
    with socket.socket() as any_socket:
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = fcntl.ioctl(any_socket, 0x8913, asked)
        fcntl.ioctl(any_socket, 0x8914, flags)
    return True


def type_into_a_terminal():
    """TIOCSTI into a terminal of its own, which needs no right of a terminal's owner."""
    own, terminal = os.openpty()

    def types():
        os.setsid()
        fcntl.ioctl(terminal, 0x540E, 0)
        return fcntl.ioctl(terminal, 0x5412, b"x") is not None

    try:
        return in_a_child(types)
    finally:
        os.close(own)
        os.close(terminal)


def mount_something():
    return in_a_child(lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 and libc.umount(b"/tmp") == 0)


def mount_by_new_calls():
    return opens(430, b"tmpfs", 0)


def unmount_what_hides():
    return libc.umount2(b"/proc/sys", 2) == 0 or libc.umount2(b"/proc/kcore", 2) == 0


def remount_read_only_folders():
    folder = os.path.dirname(TARGETS["input"]).encode()
    done = libc.mount(b"none", folder, None, _REMOUNT_WRITABLE, None) == 0
    return done or libc.mount(b"none", b"/usr", None, _REMOUNT_WRITABLE, None) == 0


def _unshared(flags):
    return in_a_child(lambda: libc.unshare(flags) == 0)


def new_user_namespace():
    return _unshared(_NEW_USER)


def new_user_namespace_by_clone():
    pid = call(56 if X86 else 220, _NEW_USER | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def new_mount_namespace():
    return _unshared(_NEW_MOUNTS)


def new_network_namespace():
    return _unshared(_NEW_NETWORK)


def new_process_namespace():
    return _unshared(_NEW_PIDS)


def leave_by_chroot():
    return in_a_child(lambda: os.chroot("/") is None)


def leave_by_pivot_root():
    return lets_pass(155 if X86 else 41, b"/tmp", b"/tmp")


def make_device():
    os.mknod("/tmp/aip-null", 0o20600, os.makedev(1, 3))
    os.remove("/tmp/aip-null")
    return True


def _opens_device(*names):
    for name in names:
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK))
        except OSError:
            continue
        return True
    return False


def open_other_cards():
    cards = [name for name in os.listdir("/dev") if name.startswith(("nvidia", "davinci", "kfd"))]
    return _opens_device("dri/renderD128", *cards)


def open_disks():
    disks = [name for name in os.listdir("/dev") if name.startswith(("sd", "vd", "nvme", "loop", "dm-", "xvd"))]
    return _opens_device("loop-control", *disks)


def open_virtual_machines():
    return _opens_device("kvm", "vhost-vsock", "vhost-net")


def open_network_device():
    return _opens_device("net/tun")


def open_user_file_systems():
    return _opens_device("fuse", "cuse")


def open_consoles():
    return _opens_device("console", "tty0", "tty1", "vcs", "input/event0", "uinput")


PROBES = (
    write_core_pattern, write_kernel_settings, write_its_host_name, press_sysrq, set_uevent_helper, set_release_agent,
    leave_its_cgroup, write_sys, register_binary_format, read_kernel_memory, read_kernel_addresses,
    read_memory_of_machine, read_kernel_log, write_kernel_log, open_debugfs, load_kernel_module, load_another_kernel,
    load_bpf, watch_the_machine, handle_page_faults, use_io_uring, watch_all_files, manage_swap,
    account_all_processes, set_clock, adjust_clock, restart_the_machine, use_hardware_ports,
    use_ciphers_of_the_kernel, reach_the_host_of_a_virtual_machine, listen_to_the_network, configure_the_network,
    type_into_a_terminal, mount_something, mount_by_new_calls, unmount_what_hides, remount_read_only_folders,
    new_user_namespace, new_user_namespace_by_clone, new_mount_namespace, new_network_namespace,
    new_process_namespace, leave_by_chroot, leave_by_pivot_root, make_device, open_other_cards, open_disks,
    open_virtual_machines, open_network_device, open_user_file_systems, open_consoles,
)  # fmt: skip
