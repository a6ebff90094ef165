"""Thirty ways out, tried from inside a job. Runs alone (`python -I -S probes.py TARGETS.json`), prints one JSON line.

Every probe answers "possible" or "refused". Nothing is harmed: what would be is a canary made for the purpose.
"""

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import time

TARGETS = {}


def reads(path):
    with open(path, "rb") as file:
        return bool(file.read(1)) or True


def writes(path):
    with open(path, "ab") as file:
        file.write(b"x")
    return True


def read_platform_secret():
    return reads(TARGETS["secret"])


def read_repository():
    return reads(TARGETS["repository"])


def read_database():
    return reads(TARGETS["database"])


def read_other_run():
    return reads(TARGETS["other_run"])


def write_other_run():
    return writes(TARGETS["other_run"])


def read_other_home():
    return reads(TARGETS["other_home"])


def forge_own_record():
    return writes(TARGETS["own_record"])


def write_read_only_input():
    return writes(TARGETS["input"])


def write_system():
    return writes("/usr/local/aip-canary") and not os.remove("/usr/local/aip-canary")


def write_etc():
    with open("/etc/hosts", "ab"):
        return True


def read_shadow():
    return reads("/etc/shadow")


def list_other_processes():
    return str(TARGETS["victim"]) in os.listdir("/proc")


def read_other_environment():
    return b"AIP_CANARY" in open(f"/proc/{TARGETS['victim']}/environ", "rb").read()


def signal_other():
    os.kill(TARGETS["victim"], 0)
    return b"victim" in open(f"/proc/{TARGETS['victim']}/cmdline", "rb").read()


def ptrace_other():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, TARGETS["victim"], 0, 0) != 0:  # PTRACE_ATTACH
        return False
    os.waitpid(TARGETS["victim"], 0x40000000)
    libc.ptrace(17, TARGETS["victim"], 0, 0)
    return True


def signal_supervisor():
    os.kill(TARGETS["supervisor"], 0)
    return b"supervisor" in open(f"/proc/{TARGETS['supervisor']}/cmdline", "rb").read()


def read_supervisor_environment():
    return bool(open(f"/proc/{TARGETS['supervisor']}/environ", "rb").read())


def connect_broker_socket():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(TARGETS["broker"])
    return True


def become_root():
    os.setuid(0)
    return os.geteuid() == 0


def hold_capabilities():
    with open("/proc/self/status") as file:
        lines = file.read().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) for line in lines)


def mount_something():
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 and libc.umount(b"/tmp") == 0


def make_device():
    os.mknod("/tmp/aip-null", 0o20600, os.makedev(1, 3))
    os.remove("/tmp/aip-null")
    return True


def new_user_namespace():
    if (pid := os.fork()) == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        os._exit(0 if libc.unshare(0x10000000) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def leave_by_chroot():
    if (pid := os.fork()) == 0:
        try:
            os.chroot("/")
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def gain_by_setuid_program():
    done = subprocess.run(
        ["/bin/su", "-c", "true"], check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=5
    )
    return done.returncode == 0


def set_clock():
    return time.clock_settime(time.CLOCK_REALTIME, time.time()) is None


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
    return


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
    pid = os.fork()
    if pid == 0:
        held = mmap.mmap(-1, TARGETS["memory_bytes"] + (64 << 20))
        for at in range(0, len(held), 4096):
            held[at] = 1
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def open_other_cards():
    return any(os.path.exists(f"/dev/nvidia{number}") for number in range(16)) or os.path.exists("/dev/fuse")


def raise_own_limits():
    soft, _hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (soft, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_NICE, (40, 40))
    return True


PROBES = (
    read_platform_secret, read_repository, read_database, read_other_run, write_other_run, read_other_home,
    forge_own_record, write_read_only_input, write_system, write_etc, read_shadow, list_other_processes,
    read_other_environment, signal_other, ptrace_other, signal_supervisor, read_supervisor_environment,
    connect_broker_socket, become_root, hold_capabilities, mount_something, make_device, new_user_namespace,
    leave_by_chroot, gain_by_setuid_program, set_clock, outlive_the_job, fork_without_end, hold_memory_without_end,
    open_other_cards, raise_own_limits,
)  # fmt: skip


def answer(probe):
    try:
        found = probe()
    except Exception:
        return "refused"
    return "asked" if found is None else "possible" if found else "refused"


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        TARGETS.update(json.load(file))
    with open(TARGETS["own_record"]) as file:
        TARGETS["supervisor"] = json.load(file)["pid"]
    print(json.dumps({probe.__name__: answer(probe) for probe in PROBES}))
