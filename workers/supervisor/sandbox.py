"""How much of the machine a job sees: 0 all of it, 1 Landlock, 2 bubblewrap, 3 and a uid per person, 4 a container.

Below tier 3 this separates colleagues, not enemies.
Everything is by allowance: system folders and the granted paths are there,
whatever else lies on the machine (this repository, the data root, homes) is not.
"""

import os

from workers.supervisor import landlock
from workers.supervisor.ticket import Ticket

PLAIN, LANDLOCK, BUBBLEWRAP, OWN_UID, CONTAINER = 0, 1, 2, 3, 4

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "fonts", "group", "host.conf", "hosts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf", "nvidia", "OpenCL",
    "passwd", "pki", "protocols", "resolv.conf", "services", "ssl", "terminfo", "timezone", "vulkan",
)  # fmt: skip
RUN = ("/run/systemd/resolve", "/run/nvidia-persistenced", "/run/nscd")
SETPRIV = ("/usr/bin/setpriv", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
_HARMLESS_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm", "pts", "ptmx", "fd", "stdin",
                     "stdout", "stderr")  # fmt: skip


def system_paths() -> list[str]:
    """Return what every job may read."""
    names = [*SYSTEM, *RUN, *(f"/etc/{name}" for name in ETC)]
    return [name for name in names if os.path.exists(name)]


def wrapped(ticket: Ticket) -> list[str]:
    """Return the command as it is started: as it is, or inside bubblewrap.

    From tier 2 on the job lives in a pid namespace whose first process dies with the
    supervisor: a killed supervisor leaves nothing behind. In tier 3 the supervisor is
    root; setpriv gives up everything inside, for ever, before the first line of the job.
    """
    if ticket.tier < BUBBLEWRAP:
        return ticket.argv
    argv = [ticket.bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    argv += ["--cap-drop", "ALL"]
    if ticket.tier >= OWN_UID:
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    argv += ["--proc", "/proc", "--dev", "/dev", "--ro-bind-try", "/sys", "/sys"]
    for device in ticket.devices:
        argv += ["--dev-bind-try", device, device]
    for path in system_paths():
        if path in SYSTEM and os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        else:
            argv += ["--ro-bind", path, path]
    argv += ["--bind", ticket.tmp, "/tmp"] if ticket.tmp else ["--tmpfs", "/tmp"]
    read, write = ticket.paths()
    granted = dict.fromkeys(read, "--ro-bind") | dict.fromkeys(write, "--bind")
    if ticket.tier >= OWN_UID:  # the folders on the way are made by root, who alone could enter them otherwise
        for folder in sorted({parent for path in granted for parent in _above(path)}):
            argv += ["--perms", "0755", "--dir", folder]
    for path in sorted(granted, key=lambda path: path.count("/")):  # a folder before what lies in it
        argv += [granted[path], path, path]
    give_up = [*SETPRIV, f"--reuid={ticket.uid}", f"--regid={ticket.uid}", "--"] if ticket.tier >= OWN_UID else []
    return [*argv, "--chdir", ticket.cwd, "--", *give_up, *ticket.argv]


def _above(path: str) -> list[str]:
    """Return the folders between / and `path`, except what the system's folders hold."""
    found = []
    while (path := os.path.dirname(path)) != "/":
        if not path.startswith(SYSTEM):
            found.append(path)
    return found


def give(ticket: Ticket) -> None:
    """Make what the job may write its uid's own; what others own already stays theirs, links are not followed."""
    shared = ticket.env.get("CUDA_MPS_PIPE_DIRECTORY")
    for top in [*ticket.paths()[1], ticket.tmp]:
        if not top or top == shared:
            continue
        for path in [top, *(os.path.join(at, name) for at, dirs, files in os.walk(top) for name in (*dirs, *files))]:
            if os.lstat(path).st_uid == os.geteuid():
                os.lchown(path, ticket.uid, ticket.uid)


def enter(ticket: Ticket) -> None:
    """Restrict the calling process for ever; runs in the child, just before the command.

    Raises:
        OSError: the kernel refused.
    """
    if ticket.tier != LANDLOCK:
        return
    read, write = ticket.paths()
    devices = [f"/dev/{name}" for name in _HARMLESS_DEVICES] + ticket.devices
    landlock.restrict([*system_paths(), "/proc", "/sys", *read], [*write, *devices])
